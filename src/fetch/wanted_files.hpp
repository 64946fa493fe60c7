// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "digest/digest.hpp"
#include "fetch/target.hpp"

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

namespace weightfs::fetch {

/// Files that are known by their sha256, to be found among others by size first. Files that are
/// not are left out. Immutable once it is filled; then thread-safe.
class WantedFiles {
 public:
  void add(const snapshot::SnapshotPtr& snapshot, const source::SourcePtr& source);

  /// The file of this content, of the snapshot that was added first; null where none has it with
  /// this size.
  [[nodiscard]] const Target* find(const Digest& sha256, std::uint64_t size) const;
  [[nodiscard]] bool has_size(std::uint64_t size) const { return by_size_.contains(size); }
  /// Whether any content of this size is one of which `is_missing` says so.
  [[nodiscard]] bool any_of_size(std::uint64_t size,
                                 const std::function<bool(const Digest&)>& is_missing) const;

 private:
  std::unordered_map<Digest, Target> by_digest_;
  std::unordered_map<std::uint64_t, std::vector<Digest>> by_size_;
};

}  // namespace weightfs::fetch
