// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "snapshot/snapshot.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weightfs::vfs {

/// The directories of one snapshot, numbered. Index 0 is the root; every other directory and every
/// file has its position among all paths, sorted bytewise, counted from 1: the same numbers come
/// out on every node and after every restart, from nothing but the file list. Immutable, so
/// thread-safe.
class SnapshotTree {
 public:
  struct Node {
    std::string name;  ///< the last component
    std::uint32_t parent = 0;
    std::int64_t mtime = 0;  ///< of a directory: the newest file below it
    std::optional<std::uint32_t>
        file;  ///< index into the snapshot's files; nullopt for a directory
    std::vector<std::uint32_t> children;  ///< sorted by name
  };

  /// Error(kUnsupported) for more entries than a NodeId can number.
  explicit SnapshotTree(const snapshot::Snapshot& snapshot);

  /// nullptr for an index that does not exist.
  [[nodiscard]] const Node* node(std::uint32_t index) const noexcept {
    return index < nodes_.size() ? &nodes_[index] : nullptr;
  }
  [[nodiscard]] std::optional<std::uint32_t> child(std::uint32_t directory,
                                                   std::string_view name) const noexcept;
  /// Of one of the snapshot's files, by its index there.
  [[nodiscard]] std::uint32_t index_of(std::size_t file) const { return files_.at(file); }
  /// From the root, without a leading '/'.
  [[nodiscard]] std::string path(std::uint32_t index) const;

 private:
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> files_;
};

using SnapshotTreePtr = std::shared_ptr<const SnapshotTree>;

}  // namespace weightfs::vfs
