// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/file/file_version.hpp"

#include "source/file/file_error.hpp"

#include <fmt/format.h>

#include <cerrno>

namespace weightfs::source {

std::string version_of(const struct stat& status) {
  return fmt::format("size={};mtime={}.{:09};inode={}", status.st_size, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec, status.st_ino);
}

struct stat status_of(const Fd& fd, const std::string& what) {
  struct stat status {};
  if (::fstat(fd.value(), &status) != 0) throw_file_error(errno, what);
  return status;
}

}  // namespace weightfs::source
