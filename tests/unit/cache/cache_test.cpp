// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cache/cache.hpp"

#include "../store/store_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace weightfs::cache {
namespace {

using policy::Admission;
using snapshot::File;
using snapshot::Snapshot;
using snapshot::SnapshotPtr;
using store::put;
using store::random_bytes;

constexpr std::uint64_t kKiB = 1 << 10;

class Unheard final : public EvictionObserver {
 public:
  void blob_gone(const Digest&) override {}
  void bytes_discarded(const Digest&) override {}
};

/// A cache over a store of its own, and readers who come one after the other.
class Node {
 public:
  explicit Node(Mode mode)
      : cache({.store = *store,
               .catalog = catalog,
               .clock = clock_,
               .observer = observer_,
               .store_directories = {directory_.path() / "store"}},
              {.admission = Admission::kSecondReference,
               .limits = {.capacity = {.bytes = 100 * kKiB}, .min_free = {}},
               .use_log = directory_.path() / "state" / "uses"},
              mode, Log::silent()) {}

  SnapshotPtr model(const std::string& name, std::uint64_t size) {
    File file;
    file.path = "model.safetensors";
    file.size = size;
    file.sha256 = Digest::of(random_bytes(size, size));
    auto made = std::make_shared<const Snapshot>("file:///" + name, "", std::vector{file});
    catalog.add(name, made->source(), made);
    return made;
  }

  /// Reads all of it, and fetches it if that has to be; says whether it was there.
  bool load(const SnapshotPtr& snapshot, const std::string& consumer) {
    const File& file = snapshot->files()[0];
    const fetch::Target target{.snapshot = snapshot, .file_index = 0, .source = nullptr};
    const bool prod = cache.mode() == Mode::kProd;
    const bool there = prod && store->contains(*file.sha256);
    cache.opened(snapshot, 0, consumer);
    if (!there && prod) {
      (void)cache.claim(target, [&] { put(*store, random_bytes(file.size, file.size)); });
    } else if (!there) {
      cache.streamed(target);
    }
    cache.closed(snapshot->key());
    return there;
  }

  /// Every file of the store, with what would change if it were written to.
  [[nodiscard]] std::map<std::string, std::filesystem::file_time_type> tree() const {
    std::map<std::string, std::filesystem::file_time_type> files;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(directory_.path() / "store")) {
      files[entry.path()] = entry.last_write_time();
    }
    return files;
  }

 private:
  store::TemporaryDirectory directory_;
  store::ManualClock clock_;
  Unheard observer_;

 public:
  std::unique_ptr<store::Store> store = store::open_store(directory_.path() / "store", clock_);
  catalog::Catalog catalog{directory_.path() / "state", clock_, Log::silent()};
  Cache cache;
};

/// Loads of six models that fit four at a time, by consumers who come back.
std::uint64_t replay(Node& node) {
  std::vector<SnapshotPtr> models;
  for (std::uint64_t i = 0; i < 6; ++i) {
    models.push_back(node.model("m" + std::to_string(i), (15 + i) * kKiB));
  }
  std::uint64_t hits = 0;
  std::uint64_t random = 11;
  for (int step = 0; step < 400; ++step) {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    // Some are asked for more often than others.
    const std::size_t which = std::min((random >> 33) % 6, (random >> 43) % 6);
    hits += node.load(models[which], "job-" + std::to_string(step)) ? 1 : 0;
  }
  return hits;
}

TEST_CASE("what shadow says would have been is what prod then does") {
  Node prod(Mode::kProd);
  Node shadow(Mode::kShadow);
  const auto before = shadow.tree();
  const std::uint64_t hits = replay(prod);
  CHECK(replay(shadow) == 0);
  CHECK(shadow.tree() == before);

  const CacheStatus real = prod.cache.status().value();
  const CacheStatus imagined = shadow.cache.status().value();
  CHECK(hits > 200);
  CHECK(imagined.shadow.value().hits == hits);
  CHECK(imagined.shadow.value().misses == 400 - hits);
  CHECK(imagined.governor.evictions == real.governor.evictions);
  CHECK(imagined.governor.evicted_bytes == real.governor.evicted_bytes);
  CHECK(imagined.governor.resident_bytes == real.governor.resident_bytes);
  CHECK_FALSE(real.shadow);
}

TEST_CASE("shadow begins with what the store has, and leaves it as it is") {
  Node node(Mode::kProd);
  const SnapshotPtr kept = node.model("kept", 30 * kKiB);
  node.cache.admit(kept);
  node.load(kept, "a");
  const auto before = node.tree();
  node.cache.set_mode(Mode::kShadow);
  CHECK(node.cache.status().value().governor.budget.used == 30 * kKiB);
  node.load(kept, "b");
  const SnapshotPtr large = node.model("large", 90 * kKiB);
  node.cache.admit(large);
  node.load(large, "b");
  const CacheStatus status = node.cache.status().value();
  CHECK(status.shadow.value().hits == 1);
  CHECK(status.shadow.value().hit_bytes == 30 * kKiB);
  CHECK(status.governor.evictions == 1);
  CHECK(node.tree() == before);

  node.cache.set_mode(Mode::kProd);
  CHECK(node.cache.status().value().governor.budget.used == 30 * kKiB);
  CHECK(node.load(kept, "c"));
}

TEST_CASE("off keeps nothing and knows of nothing") {
  Node node(Mode::kOff);
  const SnapshotPtr model = node.model("model", 15 * kKiB);
  node.cache.admit(model);
  for (const char* const consumer : {"a", "b", "c"}) CHECK_FALSE(node.load(model, consumer));
  CHECK_FALSE(node.cache.status());
  node.cache.set_mode(Mode::kProd);
  CHECK(node.cache.status().value().governor.probation_bytes == 0);
  node.load(model, "d");
  CHECK(node.load(model, "d"));
}

}  // namespace
}  // namespace weightfs::cache
