// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"

#include <sys/stat.h>
#include <string>

namespace weightfs::source {

/// For File::validator: size, modification time to the nanosecond, and inode. Not the device, whose
/// number depends on the order of mounting; inode numbers of NFS and Lustre are the server's. Not
/// ctime: a chmod is no new version. What escapes it: a file that is rewritten in place, to the
/// same size, with its time put back or within one tick of the kernel's clock.
[[nodiscard]] std::string version_of(const struct stat& status);

/// fstat(2). Throws as throw_file_error.
[[nodiscard]] struct stat status_of(const Fd& fd, const std::string& what);

}  // namespace weightfs::source
