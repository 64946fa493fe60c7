// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/process_lock.hpp"
#include "base/synchronized.hpp"
#include "catalog/models.hpp"
#include "snapshot/snapshot.hpp"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace weightfs::catalog {

/// What a Catalog knows. A value.
struct Tables {
  Models models;
  Models lost;
  std::unordered_map<Digest, snapshot::SnapshotPtr> snapshots;  ///< by key
  std::unordered_map<Digest, Digest> keys_by_id;  ///< only of snapshots that have an id
  std::unordered_set<Digest> forgotten;
  std::unordered_multimap<Digest, std::string> candidates;  ///< by key; see Catalog::consider
};

/// The state directory of a Catalog and what was read from it: memory never says what is not on
/// disk, but for digests that could not be written. Thread-safe; readers never wait for the disk.
/// The clock must outlive it.
class CatalogState {
 public:
  /// As the Catalog's.
  CatalogState(std::filesystem::path directory, const Clock& clock, Log log);

  /// Applies `change` to a copy of the names (shown, lost), writes it, and only then lets readers
  /// see it. What `change` throws changes nothing. Changes are rare and one at a time.
  void update_models(const std::function<void(Models&, Models&)>& change);
  /// Writes a snapshot, before any name can point to it. Within update_models only.
  void keep(const snapshot::SnapshotPtr& snapshot);
  void consider(const snapshot::SnapshotPtr& snapshot, const std::string& name);
  void dismiss(const Digest& snapshot_key);
  void learn(const Digest& snapshot_key, std::size_t file_index, const Digest& sha256);

  [[nodiscard]] snapshot::SnapshotPtr snapshot(const Digest& key) const;
  [[nodiscard]] std::vector<snapshot::SnapshotPtr> snapshots() const;
  template <class F>
  auto read(F&& f) const {
    return std::as_const(*tables_).with(std::forward<F>(f));
  }
  [[nodiscard]] std::int64_t now() const;  ///< seconds since 1970
  [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }
  [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }

 private:
  [[nodiscard]] std::filesystem::path file_of(const Digest& key) const;
  [[nodiscard]] std::filesystem::path learned_of(const Digest& key) const;
  void learn_one(const snapshot::SnapshotPtr& learned, const snapshot::LearnedDigest& line);
  void write_snapshot(const snapshot::Snapshot& snapshot) const;
  void load_snapshots(Tables& tables) const;
  [[nodiscard]] snapshot::Snapshot load(const std::filesystem::path& file, const Digest& key) const;
  void set_lost_aside(Tables& tables) const;
  void forget_unused();

  const std::filesystem::path directory_;
  const Clock& clock_;
  const Log log_;
  const std::optional<ProcessLock> lock_;
  struct Writer {};
  Synchronized<Writer> writer_;  // before tables_ in lock order; the only lock held across writes
  std::unique_ptr<Synchronized<Tables>> tables_;
  std::atomic<std::uint64_t> generation_ = 0;  ///< of what snapshots() has
  std::atomic<std::uint64_t> changes_ = 1;     ///< of the names
};

}  // namespace weightfs::catalog
