// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "../store/store_fixture.hpp"
#include "base/file.hpp"
#include "catalog/catalog.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <chrono>
#include <memory>

using namespace weightfs;
using catalog::Catalog;
using catalog::Pin;
using Catch::Matchers::ContainsSubstring;
using snapshot::Snapshot;
using snapshot::SnapshotPtr;

namespace {

constexpr std::int64_t kStart = 1'700'000'000;  // of a ManualClock

struct State {
  State() { catalog->add("org/m", "file:///m", snapshot); }
  void reopen() {
    catalog.reset();
    catalog = std::make_unique<Catalog>(directory.path(), clock, Log::silent());
  }

  store::TemporaryDirectory directory;
  store::ManualClock clock;
  std::unique_ptr<Catalog> catalog =
      std::make_unique<Catalog>(directory.path(), clock, Log::silent());
  SnapshotPtr snapshot = std::make_shared<const Snapshot>(
      "file:///m", "",
      std::vector<snapshot::File>{{.path = "w", .size = 3, .sha256 = Digest::of("abc")}});
};

}  // namespace

TEST_CASE("a pin with an end guards until then, over a restart, and is not shown afterwards") {
  State state;
  const Pin pin{.reason = "launch", .owner = "ada", .until = kStart + 60};
  state.catalog->pin("org/m", pin);
  state.clock.advance(std::chrono::seconds(59));
  state.reopen();
  CHECK(state.catalog->find("org/m")->pin == pin);
  CHECK(state.catalog->pinned(state.snapshot->key()));
  state.clock.advance(std::chrono::seconds(1));
  for (int life = 0; life < 2; ++life) {
    CHECK_FALSE(state.catalog->find("org/m")->pin);
    CHECK_FALSE(state.catalog->list().front().pin);
    CHECK_FALSE(state.catalog->pinned(state.snapshot->key()));
    state.reopen();
  }
}

TEST_CASE("a pin is replaced by the next one, and taken away by unpin") {
  State state;
  state.catalog->pin("org/m", {.reason = "a", .owner = "ada", .until = kStart + 60});
  state.catalog->pin("org/m", {.reason = "b", .owner = "", .until = 0});
  state.clock.advance(std::chrono::hours(24 * 365));
  CHECK(state.catalog->find("org/m")->pin == Pin{.reason = "b", .owner = "", .until = 0});
  state.catalog->unpin("org/m");
  CHECK_FALSE(state.catalog->pinned(state.snapshot->key()));
}

TEST_CASE("the names of a version that knew no owners and ends are read") {
  State state;
  state.catalog->pin("org/m", {.reason = "old", .owner = "", .until = 0});
  const auto file = state.directory.path() / "catalog.json";
  const std::string text = read_file(file, 1 << 20);
  CHECK_THAT(text, !ContainsSubstring("pin_owner") && !ContainsSubstring("pin_until"));
  state.reopen();
  CHECK(state.catalog->find("org/m")->pin == Pin{.reason = "old", .owner = "", .until = 0});
}
