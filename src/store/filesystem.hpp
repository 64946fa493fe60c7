// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace weightfs::store {

enum class FilesystemKind {
  kLocal,
  kNetwork,  ///< on, or possibly on, another machine: a cache there defeats the purpose
  kMemory,   ///< tmpfs and its like: the store takes RAM and is gone after a boot
  kOverlay,  ///< works, but the kernel refuses passthrough on it
};

struct Filesystem {
  std::string_view name;
  FilesystemKind kind = FilesystemKind::kLocal;
};

/// By the magic of statfs(2) (linux/magic.h, and what out-of-tree filesystems use). Every FUSE
/// filesystem counts as network: statfs does not tell sshfs from ntfs-3g, and a store within our
/// own mount would wait for itself. Pure.
[[nodiscard]] Filesystem classify_filesystem(std::uint64_t magic) noexcept;

/// Throws Error.
[[nodiscard]] Filesystem filesystem_of(const std::filesystem::path& path);

struct Space {
  std::uint64_t capacity = 0;  ///< bytes
  std::uint64_t free = 0;      ///< bytes that an unprivileged process can have
  std::uint64_t device = 0;    ///< the same for directories that share it
};

/// The number of the device that `path` is on. Throws Error.
[[nodiscard]] std::uint64_t device_of(const std::filesystem::path& path);

/// Throws Error.
[[nodiscard]] Space space_of(const std::filesystem::path& path);
/// Of the filesystem that a directory is on, or would be made on. Throws Error.
[[nodiscard]] Space space_for(std::filesystem::path directory);

}  // namespace weightfs::store
