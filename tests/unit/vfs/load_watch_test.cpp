// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "vfs/load_watch.hpp"

#include "base/error.hpp"

#include <catch2/catch_test_macros.hpp>

#include <future>
#include <memory>
#include <set>
#include <string>
#include <vector>

using namespace weightfs;
using namespace weightfs::vfs;
using Loaders = LoadWatch::Loaders;

namespace {

class StillClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const noexcept override { return now_; }
  [[nodiscard]] std::chrono::system_clock::time_point wall() const noexcept override { return {}; }
  void advance(std::chrono::seconds by) { now_ += by; }

 private:
  TimePoint now_{};
};

/// A revision of three shards and a config, shown as "m".
class Bench {
 public:
  static NodeId node(std::uint32_t index) { return {1, index, 0, true}; }
  [[nodiscard]] Place place(std::uint32_t index, const std::string& path = "m") const {
    return {.tree = {TreeTable::Kind::kView, path, snapshot_->key()},
            .number = 1,
            .index = index,
            .snapshot = snapshot_,
            .layout = layout_};
  }
  void open(std::uint32_t index, const std::string& consumer = "pod",
            const std::string& path = "m") {
    watch.opened(place(index, path), node(index), consumer);
  }
  /// Opens and closes.
  void read(std::uint32_t index, const std::string& consumer = "pod") {
    open(index, consumer);
    watch.closed(node(index));
  }
  LoadWatch::Outcome flip(Loaders loaders = Loaders::kRespected) {
    return watch.flip("m", snapshot_->key(), loaders, [&] { ++flips; });
  }
  [[nodiscard]] bool loading() {
    // A flip that fails changes nothing.
    try {
      return !watch.flip("m", snapshot_->key(), Loaders::kRespected, [] { throw 1; }).flipped;
    } catch (int) {
      return false;
    }
  }
  /// The positions of files in the tree, by name.
  [[nodiscard]] std::uint32_t at(const std::string& name) const {
    return layout_->child(0, name).value();
  }

  StillClock clock;
  std::set<std::uint64_t> filling;
  LoadWatch watch{clock, [this](NodeId node) { return filling.contains(node.value()); }};
  int flips = 0;

 private:
  static snapshot::SnapshotPtr made() {
    std::vector<snapshot::File> files;
    for (const char* path : {"1.safetensors", "2.safetensors", "3.safetensors", "config.json"}) {
      files.push_back({.path = path, .size = 10, .sha256 = Digest::of(path)});
    }
    return std::make_shared<const snapshot::Snapshot>("file:///m", "", files);
  }
  const snapshot::SnapshotPtr snapshot_ = made();
  const SnapshotTreePtr layout_ = std::make_shared<const SnapshotTree>(*snapshot_);
};

}  // namespace

TEST_CASE("a consumer loads from the first file of weights to the last") {
  Bench bench;
  bench.read(bench.at("config.json"));
  CHECK_FALSE(bench.loading());
  bench.read(bench.at("1.safetensors"));
  CHECK(bench.loading());
  bench.read(bench.at("2.safetensors"));
  CHECK(bench.loading());
  bench.read(bench.at("3.safetensors"));
  CHECK_FALSE(bench.loading());
  bench.read(bench.at("1.safetensors"));
  CHECK(bench.loading());  // again
}

TEST_CASE("a consumer that opens no more is not waited for, but longer while it has a file open") {
  Bench bench;
  bench.read(bench.at("1.safetensors"));
  bench.clock.advance(LoadWatch::kBetweenFiles);
  CHECK_FALSE(bench.loading());
  bench.open(bench.at("2.safetensors"));
  bench.clock.advance(LoadWatch::kBetweenFiles);
  CHECK(bench.loading());
  bench.watch.closed(Bench::node(bench.at("2.safetensors")));
  bench.clock.advance(LoadWatch::kBetweenFiles - std::chrono::seconds(1));
  CHECK(bench.loading());
  bench.open(bench.at("3.safetensors"));
  bench.clock.advance(LoadWatch::kWithFile);
  CHECK_FALSE(bench.loading());
}

TEST_CASE("a file that is still being fetched is being loaded, however long that takes") {
  Bench bench;
  const std::uint32_t last = bench.at("3.safetensors");
  bench.filling.insert(Bench::node(last).value());
  bench.read(bench.at("1.safetensors"));
  bench.read(bench.at("2.safetensors"));
  bench.open(last);
  bench.clock.advance(std::chrono::hours(1));
  CHECK(bench.loading());
  bench.filling.clear();
  CHECK_FALSE(bench.loading());
}

TEST_CASE("two consumers with half of the files each are both loading") {
  Bench bench;
  bench.read(bench.at("1.safetensors"), "a");
  bench.read(bench.at("2.safetensors"), "b");
  bench.read(bench.at("3.safetensors"), "b");
  bench.read(bench.at("1.safetensors"), "b");
  CHECK(bench.flip().loader == "a");
  CHECK(bench.flips == 0);
}

TEST_CASE("who loads by revision or by snapshot is not in the way") {
  Bench bench;
  bench.open(bench.at("1.safetensors"), "a", "m@1234567890");
  bench.open(bench.at("1.safetensors"), "a", ".snapshots/1234567890");
  CHECK_FALSE(bench.loading());
  CHECK(bench.flip().flipped);
}

TEST_CASE("a flip that ignores a loader says whom") {
  Bench bench;
  bench.read(bench.at("1.safetensors"));
  const auto outcome = bench.flip(Loaders::kIgnored);
  CHECK(outcome.flipped);
  CHECK(outcome.loader == "pod");
  CHECK(bench.flips == 1);
}

TEST_CASE("who looked the old file up just before a flip is sent to look again, once") {
  Bench bench;
  bench.read(bench.at("1.safetensors"), "in it");
  CHECK(bench.flip(Loaders::kIgnored).flipped);
  CHECK_NOTHROW(bench.read(bench.at("2.safetensors"), "in it"));  // it has files of that already
  CHECK_THROWS_AS(bench.read(bench.at("1.safetensors"), "new"), Error);
  CHECK_NOTHROW(bench.read(bench.at("1.safetensors"), "new"));  // it stands in the old directory
  bench.clock.advance(LoadWatch::kStale);
  CHECK_NOTHROW(bench.read(bench.at("1.safetensors"), "later"));
}

TEST_CASE("a load that begins during a flip begins after it") {
  Bench bench;
  std::future<void> load;
  const auto outcome = bench.watch.flip("m", bench.place(0).tree.key, Loaders::kRespected, [&] {
    load = std::async(std::launch::async, [&] { bench.open(bench.at("1.safetensors")); });
    CHECK(load.wait_for(std::chrono::milliseconds(20)) == std::future_status::timeout);
  });
  CHECK(outcome.flipped);
  CHECK_THROWS_AS(load.get(), Error);
}
