// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/filesystem.hpp"

#include "base/error.hpp"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace weightfs::store {

namespace {

struct Magic {
  std::uint64_t value;
  Filesystem filesystem;
};

constexpr std::array kMagics{
    Magic{0x6969, {"nfs", FilesystemKind::kNetwork}},
    Magic{0x0BD00BD0, {"lustre", FilesystemKind::kNetwork}},
    Magic{0x00C36400, {"ceph", FilesystemKind::kNetwork}},
    Magic{0xFF534D42, {"cifs", FilesystemKind::kNetwork}},
    Magic{0xFE534D42, {"smb2", FilesystemKind::kNetwork}},
    Magic{0x517B, {"smb", FilesystemKind::kNetwork}},
    Magic{0x65735546, {"fuse", FilesystemKind::kNetwork}},
    Magic{0x01021997, {"9p", FilesystemKind::kNetwork}},
    Magic{0x47504653, {"gpfs", FilesystemKind::kNetwork}},
    Magic{0x19830326, {"beegfs", FilesystemKind::kNetwork}},
    Magic{0xAAD7AAEA, {"panfs", FilesystemKind::kNetwork}},
    Magic{0x01161970, {"gfs2", FilesystemKind::kNetwork}},
    Magic{0x7461636F, {"ocfs2", FilesystemKind::kNetwork}},
    Magic{0x5346414F, {"afs", FilesystemKind::kNetwork}},
    Magic{0x6B414653, {"kafs", FilesystemKind::kNetwork}},
    Magic{0x73757245, {"coda", FilesystemKind::kNetwork}},
    Magic{0x564C, {"ncp", FilesystemKind::kNetwork}},
    Magic{0x20030528, {"orangefs", FilesystemKind::kNetwork}},
    Magic{0x01021994, {"tmpfs", FilesystemKind::kMemory}},
    Magic{0x858458F6, {"ramfs", FilesystemKind::kMemory}},
    Magic{0x794C7630, {"overlayfs", FilesystemKind::kOverlay}},
    Magic{0xEF53, {"ext4", FilesystemKind::kLocal}},
    Magic{0x58465342, {"xfs", FilesystemKind::kLocal}},
    Magic{0x9123683E, {"btrfs", FilesystemKind::kLocal}},
    Magic{0x2FC12FC1, {"zfs", FilesystemKind::kLocal}},
    Magic{0xF2F52010, {"f2fs", FilesystemKind::kLocal}},
    Magic{0xCA451A4E, {"bcachefs", FilesystemKind::kLocal}},
};

}  // namespace

Filesystem classify_filesystem(std::uint64_t magic) noexcept {
  for (const Magic& known : kMagics) {
    if (known.value == magic) return known.filesystem;
  }
  return {"unknown", FilesystemKind::kLocal};
}

Filesystem filesystem_of(const std::filesystem::path& path) {
  struct statfs status{};
  if (::statfs(path.c_str(), &status) != 0) throw_errno(errno, "statfs " + path.string());
  // f_type is a signed word; the magics are 32 bits.
  return classify_filesystem(static_cast<std::uint32_t>(status.f_type));
}

std::uint64_t device_of(const std::filesystem::path& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) throw_errno(errno, "stat " + path.string());
  return status.st_dev;
}

Space space_of(const std::filesystem::path& path) {
  struct statvfs status{};
  if (::statvfs(path.c_str(), &status) != 0) throw_errno(errno, "statvfs " + path.string());
  return {.capacity = std::uint64_t{status.f_blocks} * status.f_frsize,
          .free = std::uint64_t{status.f_bavail} * status.f_frsize,
          .device = device_of(path)};
}

Space space_for(std::filesystem::path directory) {
  std::error_code ignored;
  while (!std::filesystem::exists(directory, ignored) && directory.has_relative_path()) {
    directory = directory.parent_path();
  }
  return space_of(directory);
}

}  // namespace weightfs::store
