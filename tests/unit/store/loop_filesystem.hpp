// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "store_fixture.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace weightfs::store {

/// A small ext4 of its own in a file, mounted through a loop device: a disk that can be full,
/// read-only, failing, or have its plug pulled. Unmounts on destruction.
class LoopFilesystem {
 public:
  /// Empty where the tests may mount (root, loop devices, mkfs.ext4); else why not.
  [[nodiscard]] static std::string unavailable();

  explicit LoopFilesystem(std::uint64_t bytes);
  LoopFilesystem(const LoopFilesystem&) = delete;
  LoopFilesystem& operator=(const LoopFilesystem&) = delete;
  ~LoopFilesystem();

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return mountpoint_; }
  [[nodiscard]] std::filesystem::path image() const { return directory_.path() / "image"; }

  /// The disk as it is at this instant, without what the page cache still owes it: what a machine
  /// finds that lost its power now. Nothing may be writing.
  [[nodiscard]] std::unique_ptr<LoopFilesystem> after_power_cut() const;
  void remount_read_only();
  /// From now on everything is answered with EIO (EXT4_IOC_SHUTDOWN), and nothing more is written.
  void fail();
  /// Drops the page cache of one file, so that the next read asks the disk.
  static void forget_pages(const std::filesystem::path& file);

 private:
  LoopFilesystem();
  void mount();

  TemporaryDirectory directory_;
  std::filesystem::path mountpoint_ = directory_.path() / "mnt";
};

}  // namespace weightfs::store
