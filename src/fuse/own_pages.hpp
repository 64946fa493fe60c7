// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "vfs/node_id.hpp"

#include <cstdint>
#include <unordered_set>

namespace weightfs::fuse {

/// The nodes whose pages in the kernel all came from this daemon. What an earlier daemon of the
/// session gave out is forgotten at the first open here: it may have been of bytes that nobody can
/// vouch for any more, because they were never on disk, or were lost with their daemon.
///
/// Thread-safe. Eight bytes and an entry of a hash table for each file opened without passthrough.
class OwnPages {
 public:
  [[nodiscard]] bool contains(vfs::NodeId node) const {
    return nodes_.with([&](const Nodes& nodes) { return nodes.contains(node.value()); });
  }
  /// After the open was answered that made the kernel drop the others.
  void add(vfs::NodeId node) {
    nodes_.with([&](Nodes& nodes) { nodes.insert(node.value()); });
  }

 private:
  using Nodes = std::unordered_set<std::uint64_t>;
  Synchronized<Nodes> nodes_;
};

}  // namespace weightfs::fuse
