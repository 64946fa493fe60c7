// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"
#include "base/synchronized.hpp"
#include "vfs/invalidator.hpp"

#include <memory>

namespace weightfs::fuse {

/// Writes notifications to the kernel, on the caller's thread. What it sends takes no lock that
/// waits for a request of ours: FUSE_NOTIFY_INVAL_INODE with a negative offset finds the inode and
/// marks its attributes as old, and touches neither its pages nor a directory
/// (fs/fuse/inode.c, fuse_reverse_inval_inode). Looking the inode up waits for one
/// that is being evicted; such an inode has no READ left, since the file of a READ holds its inode.
///
/// Thread-safe. Owns a descriptor of the connection.
class Notifier final : public vfs::Invalidator {
 public:
  /// Until then there is nobody to tell.
  void attach(Fd device);

  void attributes(vfs::NodeId node) override;

 private:
  Synchronized<std::shared_ptr<const Fd>> device_;
};

}  // namespace weightfs::fuse
