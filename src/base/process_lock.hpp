// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"

#include <filesystem>
#include <string>
#include <string_view>

namespace weightfs {

/// The right of one process to a directory: flock(2) on a file in it, for as long as this lives.
/// The kernel gives it back when the process has ended, however it ends.
///
/// A process that was killed ends only when each of its threads has, and one may hang in the kernel
/// (a dead network mount) and keep its descriptors, and so the lock, for hours. It runs none of its
/// own instructions again, so its lock is taken over: the file, which says who holds it (pid, start
/// time as in proc(5), "\n"), is replaced by another under a flock on the directory.
class ProcessLock {
 public:
  /// Creates the file. `what` is in messages: "the store". Error(kBusy) if somebody else, this
  /// process included, has it; kPermission, kNoSpace, kIo (read-only included) for what the disk
  /// says.
  ProcessLock(const std::filesystem::path& path, std::string_view what);

  /// From a process that has not ended: what else it holds locks on may be locked, too.
  [[nodiscard]] bool taken_over() const noexcept { return taken_over_; }

 private:
  Fd fd_;
  bool taken_over_ = false;
};

/// For whoever is about to change a directory that may be another process's: Error(kBusy), as of
/// ProcessLock, if one has the lock `name` in it; else what keeps others from taking it while it
/// lives (nothing, where there is no such file). Neither creates nor changes the file. The
/// directory, of which O_PATH is enough, may belong to somebody who is not trusted: no link is
/// followed. `path` is the directory's, for messages.
[[nodiscard]] Fd keep_unlocked(const Fd& directory, const std::string& name,
                               const std::filesystem::path& path, std::string_view what);

}  // namespace weightfs
