// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/outside_mount.hpp"

#include "../control/temporary_directory.hpp"
#include "cli/exit_code.hpp"

#include <catch2/catch_test_macros.hpp>

#include <filesystem>
#include <string>

using namespace weightfs;
using namespace weightfs::tests;

namespace {

namespace fs = std::filesystem;

struct Bench {
  TemporaryDirectory directory;
  fs::path root = fs::canonical(directory.path());
  fs::path mount = root / "models";
  cli::OutsideMount outside{std::vector<std::string>{mount.string()}};
  cli::Settings settings;

  Bench() {
    fs::create_directory(mount);
    settings.stores = {root / "disk", root / "store"};
    settings.state = root / "state";
    settings.socket = root / "s";
  }

  [[nodiscard]] bool refused(const fs::path& path) const {
    try {
      outside.check("the path", path);
    } catch (const cli::UsageError&) {
      return true;
    }
    return false;
  }
  [[nodiscard]] bool accepted(const cli::Settings& given) const {
    try {
      outside.check(given);
    } catch (const cli::UsageError&) {
      return false;
    }
    return true;
  }
};

}  // namespace

TEST_CASE("a path lies inside the mount point however it is written") {
  const Bench bench;
  fs::create_directory_symlink(bench.mount, bench.root / "link");
  fs::create_directory_symlink("link/deeper", bench.root / "relative");
  fs::create_directory(bench.root / "d");
  fs::create_directory_symlink("../d/../relative/x", bench.root / "d/up");
  for (const char* inside :
       {"models", "models/", "models/s", "models/./a/b", "d/../models/s", "link", "link/s",
        "relative", "relative/s", "d/up/s", "models/not/there/../s"}) {
    CAPTURE(inside);
    CHECK(bench.refused(bench.root / inside));
  }
  for (const char* outside : {"", "modelsx", "models-store/s", "d/models", "missing/x/y"}) {
    CAPTURE(outside);
    CHECK_FALSE(bench.refused(bench.root / outside));
  }
  CHECK_FALSE(bench.refused(""));
}

TEST_CASE("links in a circle are left to whoever opens the path") {
  const Bench bench;
  fs::create_symlink("b", bench.root / "a");
  fs::create_symlink("a", bench.root / "b");
  CHECK_FALSE(bench.refused(bench.root / "a/x"));
}

TEST_CASE("every path of the settings is looked at") {
  const Bench bench;
  CHECK(bench.accepted(bench.settings));
  for (fs::path cli::Settings::* const path :
       {&cli::Settings::state, &cli::Settings::socket, &cli::Settings::ca_bundle}) {
    cli::Settings settings = bench.settings;
    settings.*path = bench.mount / "x";
    CHECK_FALSE(bench.accepted(settings));
  }
  for (const bool token : {true, false}) {
    cli::Settings settings = bench.settings;
    (token ? settings.hub.token_file : settings.credentials.file) = bench.mount / "x";
    CHECK_FALSE(bench.accepted(settings));
  }
  for (const std::size_t each : {0U, 1U}) {
    cli::Settings settings = bench.settings;
    settings.stores[each] = bench.mount / "x";
    CHECK_FALSE(bench.accepted(settings));
  }
}

TEST_CASE("a mount point inside the store or the state is refused, one beside it is not") {
  const Bench bench;
  using Of = fs::path& (*)(cli::Settings&);
  for (const Of path :
       {Of([](cli::Settings& settings) -> fs::path& { return settings.state; }),
        Of([](cli::Settings& settings) -> fs::path& { return settings.stores[1]; })}) {
    cli::Settings settings = bench.settings;
    path(settings) = bench.root;
    CHECK_FALSE(bench.accepted(settings));
    path(settings) = bench.root / "mod";
    CHECK(bench.accepted(settings));
  }
}

TEST_CASE("the place of a mount to come may be named through a link") {
  const Bench bench;
  fs::create_directory_symlink(bench.mount, bench.root / "link");
  const cli::OutsideMount outside(bench.root / "link");
  CHECK_THROWS_AS(outside.check("the store", bench.mount / "store"), cli::UsageError);
  CHECK_THROWS_AS(outside.check("the store", bench.root / "link/store"), cli::UsageError);
  CHECK_NOTHROW(outside.check("the store", bench.root / "store"));
}
