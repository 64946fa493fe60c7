// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"

#include <cstdint>
#include <set>

namespace weightfs::keeper {

/// The files that the kernel reads in the daemon's place: registered on the connection, not on the
/// process, so that the ids outlive the daemon that asked for them. Confined to one thread. `fuse`
/// must outlive it.
///
/// Kernel: Documentation/filesystems/fuse/fuse-passthrough.rst, ioctls
/// FUSE_DEV_IOC_BACKING_OPEN/CLOSE (Linux 6.9).
class BackingFiles {
 public:
  static constexpr std::size_t kMax = 64 << 10;

  explicit BackingFiles(const Fd& fuse) : fuse_(fuse) {}

  /// Returns the id, > 0. The kernel will open the file again with the keeper's rights, so a
  /// descriptor that cannot read it is refused: it must not become one that can. Error: kInvalid
  /// not a regular file, or not open for reading only; kUnsupported; kNoSpace; kIo.
  std::int32_t open(const Fd& file);
  /// Error(kNotFound) for an id that is not open.
  void close(std::int32_t backing_id);
  [[nodiscard]] const std::set<std::int32_t>& ids() const noexcept { return ids_; }

 private:
  const Fd& fuse_;
  std::set<std::int32_t> ids_;
};

}  // namespace weightfs::keeper
