// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <string>

namespace weightfs::source {

/// What an errno of a mounted directory means for a source: kNotFound (ENOENT, ENOTDIR, ELOOP,
/// ENAMETOOLONG), kPermission (EACCES, EPERM); TransientError for what a file server gets over:
/// kTimedOut (ETIMEDOUT), kUnavailable (ESTALE, a host or network out of reach, too many open
/// files), kIo (EIO and everything else).
[[noreturn]] void throw_file_error(int errno_value, const std::string& what);

}  // namespace weightfs::source
