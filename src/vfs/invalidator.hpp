// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "vfs/node_id.hpp"

namespace weightfs::vfs {

/// Tells the kernel to forget what it may keep for ever and is no longer so: a node's attributes.
///
/// Nothing else is ever told. A name that can come to mean another node is looked up at each walk,
/// and what the kernel still believes of a complete node is checked at OPEN. Notifications about
/// names and pages would be a danger: for the one the kernel takes the directory's lock, which a
/// LOOKUP that waits for us holds, for the other it waits for pages that a READ holds. A daemon
/// killed in that moment could not die, and no successor would free it.
///
/// Thread-safe; from any thread; best effort.
class Invalidator {
 public:
  virtual ~Invalidator() = default;
  virtual void attributes(NodeId node) = 0;
};

}  // namespace weightfs::vfs
