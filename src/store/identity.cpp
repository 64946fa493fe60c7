// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/identity.hpp"

#include "base/error.hpp"

#include <sys/stat.h>
#include <cerrno>

namespace weightfs::store {

Identity identity_of(const Fd& fd) {
  struct stat status{};
  if (::fstat(fd.value(), &status) != 0) throw_errno(errno, "stat a blob");
  if (!S_ISREG(status.st_mode)) throw Error(Errc::kInvalid, "a blob is not a regular file");
  return {.size = static_cast<std::uint64_t>(status.st_size),
          .mtime_ns = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec,
          .inode = status.st_ino};
}

}  // namespace weightfs::store
