// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"
#include "keeper/errand.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
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
  /// What takes a fraction of a millisecond is stuck, or the machine is, after this.
  static constexpr std::chrono::milliseconds kPatience{2000};

  explicit BackingFiles(const Fd& fuse) : fuse_(fuse) {}

  /// Registers the file whose descriptor comes with the next message of the daemon's socket, and
  /// takes that message. Returns the id, > 0; nothing where the conversation cannot go on: another
  /// number of descriptors, a child that was killed, or kPatience is over.
  ///
  /// The descriptor never becomes the keeper's: the close of one on a FUSE mount of the daemon's
  /// (this one, for instance) sends FUSE_FLUSH and waits for the answer, whatever is signalled. A
  /// child receives it and closes it with its exit. There is one stuck child at most: while it is,
  /// no file is registered.
  ///
  /// The kernel will open the file again with the keeper's rights, so a descriptor that cannot read
  /// it is refused: it must not become one that can. Error: kInvalid not a regular file, or not
  /// open for reading only; kUnsupported; kNoSpace; kBusy a child is stuck; kIo.
  std::optional<std::int32_t> open_next(int socket);
  /// Error(kNotFound) for an id that is not open.
  void close(std::int32_t backing_id);
  [[nodiscard]] const std::set<std::int32_t>& ids() const noexcept { return ids_; }

 private:
  void refuse_while_stuck();

  const Fd& fuse_;
  std::set<std::int32_t> ids_;
  std::optional<Errand> stuck_;
};

}  // namespace weightfs::keeper
