// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/node_store.hpp"

#include "../control/temporary_directory.hpp"
#include "base/error.hpp"

#include <catch2/catch_test_macros.hpp>

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <filesystem>
#include <iterator>
#include <optional>

using namespace weightfs;
using namespace weightfs::tests;

namespace {

/// A store that cannot be opened, and a place of the test's own for temporary files.
struct Bench {
  Bench() { ::setenv("TMPDIR", directory.path().c_str(), 1); }
  ~Bench() { ::unsetenv("TMPDIR"); }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  TemporaryDirectory directory;
  SystemClock clock;
  cli::Settings settings{.store = "/sys/weightfs/store"};  // nobody can make a directory there

  void open(std::optional<cli::NodeStore>& store, cli::NodeStore::Mount mount) const {
    store.emplace(settings, mount, clock, Log::silent());
  }
  [[nodiscard]] std::ptrdiff_t directories() const {
    return std::distance(std::filesystem::directory_iterator(directory.path()), {});
  }
};

using Mount = cli::NodeStore::Mount;

}  // namespace

TEST_CASE("a store that cannot be opened has a substitute where readers wait already") {
  const Bench bench;
  std::optional<cli::NodeStore> store;
  CHECK_THROWS_AS(bench.open(store, Mount::kNew), Error);
  CHECK(bench.directories() == 0);
  bench.open(store, Mount::kTakenOver);
  CHECK_FALSE(store->keeps());
  CHECK_FALSE(store->error().empty());
  CHECK(bench.directories() == 1);
  store.reset();
  CHECK(bench.directories() == 0);
}

TEST_CASE("what a killed daemon left of its substitute goes with the next start") {
  const Bench bench;
  for (const Mount next : {Mount::kTakenOver, Mount::kNew}) {
    const pid_t killed = ::fork();
    if (killed == 0) {
      std::optional<cli::NodeStore> store;
      bench.open(store, Mount::kTakenOver);
      ::_exit(0);
    }
    ::waitpid(killed, nullptr, 0);
    REQUIRE(bench.directories() == 1);
    std::optional<cli::NodeStore> store;
    if (next == Mount::kNew) {
      CHECK_THROWS_AS(bench.open(store, next), Error);
      CHECK(bench.directories() == 0);
    } else {
      bench.open(store, next);
      CHECK(bench.directories() == 1);
    }
  }
  CHECK(bench.directories() == 0);
}

TEST_CASE("the substitute of a daemon that lives is left alone") {
  const Bench bench;
  std::optional<cli::NodeStore> one;
  std::optional<cli::NodeStore> two;
  bench.open(one, Mount::kTakenOver);
  bench.open(two, Mount::kTakenOver);
  CHECK(bench.directories() == 2);
  CHECK(std::filesystem::exists((*one)->directory() / "VERSION"));
  one.reset();
  two.reset();
  CHECK(bench.directories() == 0);
}
