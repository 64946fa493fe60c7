// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "../store/store_fixture.hpp"
#include "cache/governor.hpp"
#include "cache/store_stock.hpp"
#include "catalog/catalog.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weightfs::cache {

inline constexpr std::uint64_t kKiB = 1 << 10;

class Listener final : public EvictionObserver {
 public:
  void blob_gone(const Digest& digest) override { gone.push_back(digest); }
  void bytes_discarded(const Digest& key) override { discarded.push_back(key); }
  std::vector<Digest> gone;
  std::vector<Digest> discarded;
};

/// A store with a budget of its own, models of one or more files, and consumers that use them.
class Node {
  using File = snapshot::File;
  using Snapshot = snapshot::Snapshot;
  using SnapshotPtr = snapshot::SnapshotPtr;

 public:
  explicit Node(std::uint64_t capacity, policy::Admission admission = policy::Admission::kAlways) {
    options_ = {
        .admission = admission,
        .limits = {.capacity = {.bytes = capacity}, .min_free = {}, .probation = {.percent = 25}},
        .use_log = directory_.path() / "state" / "uses"};
    start();
  }
  void start() {
    governor_.reset();
    stock_.reset();
    catalog_.reset();
    store_.reset();
    store_ = store::open_store(directory_.path() / "store", clock_);
    catalog_ =
        std::make_unique<catalog::Catalog>(directory_.path() / "state", clock_, Log::silent());
    stock_ = std::make_unique<StoreStock>(*store_, listener);
    governor_ = std::make_unique<Governor>(
        Governor::Parts{.stock = *stock_, .catalog = *catalog_, .open = open, .clock = clock_},
        options_, Log::silent());
  }
  void lease(const std::string& id, const std::vector<SnapshotPtr>& snapshots,
             std::chrono::seconds time) {
    catalog::Lease lease{.id = id, .artifacts = {}};
    const auto now = std::chrono::floor<std::chrono::seconds>(clock_.wall()).time_since_epoch();
    lease.not_before = now.count();
    lease.until = (now + time).count();
    for (const SnapshotPtr& snapshot : snapshots) {
      lease.artifacts.push_back({.text = snapshot->source(), .snapshot = snapshot->key()});
    }
    catalog_->leases().put(lease);
  }
  /// A daemon that cannot open the store lives for a while; the next one is to be start()ed.
  void live_without_store() {
    governor_.reset();
    stock_.reset();
    store::Store none(clock_, Log::silent());
    StoreStock stock(none, listener);
    Governor governor({.stock = stock, .catalog = *catalog_, .open = open, .clock = clock_},
                      options_, Log::silent());
    governor.keep_limits();
  }
  void forget_uses() { std::filesystem::remove(options_.use_log); }
  void set_rollback_window(std::chrono::seconds window) {
    options_.rollback_window = window;
    start();
  }
  void advance(std::chrono::seconds by) { clock_.advance(by); }
  void set_tenants(std::vector<Tenant> tenants) { options_.tenants = std::move(tenants); }
  void set_capacity(std::uint64_t bytes) { options_.limits.capacity.bytes = bytes; }
  [[nodiscard]] Governor& governor() { return *governor_; }
  [[nodiscard]] store::Store& store() { return *store_; }
  [[nodiscard]] catalog::Catalog& catalog() { return *catalog_; }

  /// Content goes by seed and size: the same twice is one blob.
  struct Part {
    std::uint64_t seed = 0;
    std::uint64_t size = 0;
  };
  SnapshotPtr model(const std::string& name, const std::vector<Part>& parts) {
    std::vector<File> files;
    for (const Part& part : parts) {
      File file;
      file.path = "w" + std::to_string(files.size()) + ".safetensors";
      file.size = part.size;
      file.sha256 = Digest::of(store::random_bytes(part.size, part.seed));
      files.push_back(std::move(file));
      seeds_[*files.back().sha256] = part;
    }
    auto made = std::make_shared<const Snapshot>("file:///" + name, "", std::move(files));
    catalog_->add(name, made->source(), made);
    return made;
  }
  SnapshotPtr model(const std::string& name, std::uint64_t size) {
    return model(name, {{.seed = ++last_seed_, .size = size}});
  }

  /// One consumer opens every file, and what is not there is fetched as far as it is admitted.
  /// Returns whether all of it is in the store afterwards.
  bool use(const SnapshotPtr& snapshot, const std::string& consumer) {
    bool kept = true;
    for (std::size_t i = 0; i < snapshot->files().size(); ++i) {
      open.opened(snapshot->key());
      governor_->used(snapshot, i, consumer);
      kept = fetch(snapshot, i) && kept;
    }
    for (std::size_t i = 0; i < snapshot->files().size(); ++i) open.closed(snapshot->key());
    return kept;
  }
  bool fetch(const SnapshotPtr& snapshot, std::size_t index) {
    const File& file = snapshot->files()[index];
    if (store_->contains(*file.sha256)) return true;
    const Part part = seeds_.at(*file.sha256);
    return governor_->claim({.snapshot = snapshot, .file_index = index, .source = nullptr}, [&] {
      store::put(*store_, store::random_bytes(part.size, part.seed));
    });
  }
  [[nodiscard]] bool has(const SnapshotPtr& snapshot) const {
    return std::ranges::all_of(snapshot->files(),
                               [&](const File& file) { return store_->contains(*file.sha256); });
  }

  Listener listener;
  OpenSnapshots open;

 private:
  store::TemporaryDirectory directory_;
  store::ManualClock clock_;
  GovernorOptions options_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<catalog::Catalog> catalog_;
  std::unique_ptr<StoreStock> stock_;
  std::unique_ptr<Governor> governor_;
  std::unordered_map<Digest, Part> seeds_;
  std::uint64_t last_seed_ = 0;
};

}  // namespace weightfs::cache
