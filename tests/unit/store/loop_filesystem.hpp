// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "store_fixture.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace weightfs::store {

/// A filesystem of its own in a sparse file, mounted through a loop device: a disk that can be
/// full, read-only, failing, or have its plug pulled. Unmounts on destruction.
class LoopFilesystem {
 public:
  enum class Kind : std::uint8_t {
    kExt4,
    kExt4WithoutExtents,  ///< cannot reserve space, so that any write may find it full
    kXfs,                 ///< with reflinks; 300 MiB is the least that mkfs.xfs takes
  };

  /// Empty where the tests may mount (root, loop devices, a kernel that knows the filesystem); else
  /// why not. A missing mkfs is no reason: it is one of the things that tests need.
  [[nodiscard]] static std::string unavailable(Kind kind = Kind::kExt4);

  explicit LoopFilesystem(std::uint64_t bytes, Kind kind = Kind::kExt4);
  LoopFilesystem(const LoopFilesystem&) = delete;
  LoopFilesystem& operator=(const LoopFilesystem&) = delete;
  ~LoopFilesystem();

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return mountpoint_; }
  [[nodiscard]] std::filesystem::path image() const { return directory_.path() / "image"; }

  /// The disk as it is at this instant, without what the page cache still owes it: what a machine
  /// finds that lost its power now. Nothing may be writing.
  [[nodiscard]] std::unique_ptr<LoopFilesystem> after_power_cut() const;
  /// Takes all the space that is left, with a file that is not the store's; and gives it back.
  void fill_up() const;
  void free_up() const;
  void remount_read_only();
  /// Read-only from now on as the kernel makes it after an error, whoever has files open for
  /// writing.
  void abort();
  /// From now on everything is answered with EIO (EXT4_IOC_SHUTDOWN), and nothing more is written.
  void fail();
  /// Another disk, an empty one, takes its place; what is open on the first one goes on there.
  void replace();
  /// Likewise a copy of it, as far as it was synced.
  void replace_by_copy();
  /// Drops the page cache of one file, so that the next read asks the disk.
  static void forget_pages(const std::filesystem::path& file);

 private:
  explicit LoopFilesystem(Kind kind);
  void make() const;
  [[nodiscard]] std::filesystem::path filler() const { return mountpoint_ / "filler"; }
  void mount();

  Kind kind_;
  TemporaryDirectory directory_;
  std::filesystem::path mountpoint_ = directory_.path() / "mnt";
};

}  // namespace weightfs::store
