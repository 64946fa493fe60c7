// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "digest/digest.hpp"
#include "policy/holdings.hpp"
#include "snapshot/snapshot.hpp"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace weightfs::cache {

/// The files that several snapshots have (or one has twice), by content key, and which snapshot
/// each counts with: of those that are held, the one that goes last. So what goes before it gives
/// back what it is thought to, and with the last of them goes the file (policy::make_room).
///
/// Not thread-safe.
class SharedContent {
 public:
  SharedContent() = default;
  /// Linear in the files of all snapshots, 8 bytes each; what is not shared is not remembered.
  explicit SharedContent(const std::vector<snapshot::SnapshotPtr>& snapshots);

  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  [[nodiscard]] bool contains(const Digest& content_key) const {
    return entries_.contains(content_key);
  }
  /// Whether its bytes are kept. Of what is not shared nothing is noted.
  void set_present(const Digest& content_key, bool present);
  /// The snapshots other than this one that have it; sorted.
  [[nodiscard]] std::vector<Digest> others(const Digest& content_key,
                                           const Digest& snapshot_key) const;
  /// Of what is present and nobody has who is held: the first who has it.
  [[nodiscard]] std::vector<Digest> without_holder(const policy::Holdings& holdings) const;
  /// What of it counts with whom, bytes. Linear in what is shared.
  [[nodiscard]] std::unordered_map<Digest, std::uint64_t> assign(
      const policy::Holdings& holdings) const;

 private:
  struct Entry {
    std::uint64_t size = 0;
    bool present = false;
    std::vector<Digest> snapshots;  ///< sorted
  };
  std::unordered_map<Digest, Entry> entries_;
};

}  // namespace weightfs::cache
