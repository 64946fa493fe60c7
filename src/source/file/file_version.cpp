// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/file/file_version.hpp"

#include "snapshot/byte_text.hpp"
#include "source/file/file_error.hpp"

#include <fmt/format.h>

#include <linux/magic.h>
#include <sys/vfs.h>
#include <cerrno>

namespace weightfs::source {

namespace {

InodeNumber inode_number_on(const struct statfs& filesystem) {
  return filesystem.f_type == FUSE_SUPER_MAGIC ? InodeNumber::kUnstable : InodeNumber::kStable;
}

}  // namespace

InodeNumber inode_number_at(const std::string& path) {
  struct statfs filesystem{};
  if (::statfs(path.c_str(), &filesystem) != 0) {
    throw_file_error(errno, snapshot::printable(path));
  }
  return inode_number_on(filesystem);
}

InodeNumber inode_number_of(const Fd& fd) {
  struct statfs filesystem{};
  if (::fstatfs(fd.value(), &filesystem) != 0) throw_file_error(errno, "an open file");
  return inode_number_on(filesystem);
}

std::string version_of(const struct stat& status, InodeNumber inode_number) {
  std::string version = fmt::format("size={};mtime={}.{:09}", status.st_size, status.st_mtim.tv_sec,
                                    status.st_mtim.tv_nsec);
  if (inode_number == InodeNumber::kStable) version += fmt::format(";inode={}", status.st_ino);
  return version;
}

bool is_version(std::string_view version, const struct stat& status) {
  return version == version_of(status, InodeNumber::kStable) ||
         version == version_of(status, InodeNumber::kUnstable);
}

struct stat status_of(const Fd& fd, const std::string& what) {
  struct stat status{};
  if (::fstat(fd.value(), &status) != 0) throw_file_error(errno, what);
  return status;
}

}  // namespace weightfs::source
