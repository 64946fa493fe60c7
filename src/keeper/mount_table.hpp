// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weightfs::keeper {

/// One line of /proc/self/mountinfo (proc_pid_mountinfo(5)), as far as the keeper needs it.
struct MountEntry {
  int id = 0;
  std::string device;      ///< "major:minor" of the superblock, as st_dev would say
  std::string mountpoint;  ///< with the octal escapes undone
  std::string filesystem;  ///< with its subtype: "fuse.weightfs"
  bool shared = false;     ///< mounts made below it propagate
};

/// Lines that make no sense are left out.
[[nodiscard]] std::vector<MountEntry> parse_mount_table(std::string_view text);
/// What this process has mounted. Error(kIo).
[[nodiscard]] std::vector<MountEntry> mount_table();

/// The mount that a descriptor (O_PATH is enough) lies in, and the path that it was opened by,
/// without links. Neither sends a request to the filesystem, so they are safe on one that is dead
/// or does not answer yet, which stat is not. Nothing if it was unmounted meanwhile. Throws Error.
struct Place {
  MountEntry mount;
  std::string path;
};
[[nodiscard]] std::optional<Place> place_of(int descriptor);

}  // namespace weightfs::keeper
