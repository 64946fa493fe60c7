// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/log_file.hpp"

#include "base/error.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <cerrno>

namespace weightfs::cli {

Fd open_log_file(const std::filesystem::path& path, const ProcessUser& user) {
  constexpr mode_t kMode = 0640;
  // Non-blocking: a pipe in its place must not make root wait for the other end.
  constexpr int kFlags =
      O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  Fd log(::open(path.c_str(), kFlags, kMode));
  if (!log && errno != ELOOP) throw_errno(errno, "open the log " + path.string());
  struct stat found = {};
  if (log && ::fstat(log.value(), &found) != 0) throw_errno(errno, "stat the log " + path.string());
  const bool ours = log && S_ISREG(found.st_mode) && found.st_nlink == 1 &&
                    (found.st_uid == 0 || found.st_uid == user.uid);
  if (!ours) {
    throw Error(Errc::kInvalid, "will not write to " + path.string() +
                                    ": it is a link, no regular file, or another user's");
  }
  return log;
}

}  // namespace weightfs::cli
