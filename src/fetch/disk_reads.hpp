// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace weightfs::fetch {

/// What has been read from the disks that some directories lie on, by anybody, as the kernel counts
/// it
/// (/sys/dev/block/MAJOR:MINOR/stat, Documentation/block/stat.rst): a consumer whom the kernel lets
/// read a complete file by itself is seen nowhere else. A filesystem that has no block device of
/// its own (btrfs, overlay, tmpfs, ZFS) has no such count. A directory may come to be later.
///
/// Not thread-safe.
class DiskReads {
 public:
  explicit DiskReads(std::vector<std::filesystem::path> directories)
      : missing_(std::move(directories)) {}

  /// Bytes so far; nullopt where nobody counts.
  [[nodiscard]] std::optional<std::uint64_t> bytes();

 private:
  void find_missing();

  std::vector<std::filesystem::path> missing_;  ///< not there yet
  std::map<std::uint64_t, Fd> counts_;          ///< by device
};

}  // namespace weightfs::fetch
