// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"
#include "base/log.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace weightfs::keeper {

/// One weightfs mount and the /dev/fuse descriptor that it hangs on. From the constructor on, the
/// kernel queues requests, FUSE_INIT first, until a daemon reads them: whoever touches the mount
/// before that waits, so nothing here does. Confined to one thread.
///
/// The constructor detaches what a dead keeper left at the place. Its errors are Keeper's.
class Mount {
 public:
  static constexpr const char* kFilesystem = "fuse.weightfs";

  Mount(const std::filesystem::path& mountpoint, const std::string& source_name, Log log);
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;
  /// Unmounts, lazily if it is busy.
  ~Mount();

  [[nodiscard]] const Fd& fuse() const noexcept { return fuse_; }
  /// Absolute, links resolved.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// False once the last user of the last mount of it is gone, or the connection was aborted.
  [[nodiscard]] bool connected() const;
  /// Whether it is (still) what one sees at path().
  [[nodiscard]] bool in_place() const;

  /// Does nothing if it is not in place. Error(kBusy) if it is in use and `busy` says so.
  enum class IfBusy { kFail, kDetach };
  void unmount(IfBusy busy);

  /// Fails every request, those that wait and those to come, with ECONNABORTED and ENOTCONN. For a
  /// connection that nobody serves any more; does not block. Files that are open through
  /// passthrough stay readable.
  void abort();

  /// Where sysfs cannot be written (containers), warns once and leaves it.
  void set_read_ahead(std::uint32_t kilobytes);

 private:
  Log log_;
  Fd fuse_;
  std::string path_;
  std::string device_;
  bool warned_ = false;
};

}  // namespace weightfs::keeper
