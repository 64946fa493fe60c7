// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "vfs/node_id.hpp"

#include <string>

namespace weightfs::vfs {

/// Tells the kernel to forget. Only queues: the notification itself is sent from a thread of its
/// own, because the kernel may hold locks that a request handler's answer would release (libfuse,
/// doc/README.notifications). Thread-safe; never blocks; best effort, since what the kernel still
/// believes is checked again at OPEN.
class Invalidator {
 public:
  virtual ~Invalidator() = default;
  /// The next walk over `name` in `parent` asks again; files that are open stay open.
  virtual void entry(NodeId parent, const std::string& name) = 0;
  /// Drops the node's attributes, pages and, for a directory, its cached listing.
  virtual void node(NodeId node) = 0;
};

}  // namespace weightfs::vfs
