// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"

#include <sys/stat.h>
#include <string>
#include <string_view>

namespace weightfs::source {

/// Whether a file keeps its inode number.
enum class InodeNumber { kStable, kUnstable };

/// kUnstable on FUSE: many of its servers (gcsfuse, s3fs) number files as they come to know them,
/// and otherwise after a restart. Follows links; throws as throw_file_error.
[[nodiscard]] InodeNumber inode_number_at(const std::string& path);
[[nodiscard]] InodeNumber inode_number_of(const Fd& fd);

/// For File::validator: size, modification time to the nanosecond and, where it is stable, the
/// inode number. Not the device, whose number depends on the order of mounting; inode numbers of
/// NFS and Lustre are the server's. Not ctime: a chmod is no new version. What escapes it: a file
/// that is rewritten in place, to the same size, with its time put back or within one tick of the
/// kernel's clock.
[[nodiscard]] std::string version_of(const struct stat& status, InodeNumber inode_number);

/// Whether `version`, from version_of, is what `status` shows.
[[nodiscard]] bool is_version(std::string_view version, const struct stat& status);

/// fstat(2). Throws as throw_file_error.
[[nodiscard]] struct stat status_of(const Fd& fd, const std::string& what);

}  // namespace weightfs::source
