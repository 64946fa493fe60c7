// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"
#include "cli/process_user.hpp"

#include <filesystem>

namespace weightfs::cli {

/// Opens a log for root, to read and to append, made 0640 where it is missing, in a directory that
/// belongs to the daemon's `user`. That user may have put anything there, so that root would write
/// to a file of somebody else's: Error(kInvalid) for what is not a regular file with this name
/// alone, owned by root or the user; a symbolic link is not followed.
[[nodiscard]] Fd open_log_file(const std::filesystem::path& path, const ProcessUser& user);

}  // namespace weightfs::cli
