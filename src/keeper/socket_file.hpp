// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <sys/types.h>
#include <filesystem>

namespace weightfs::keeper {

/// Gives the file of a unix socket that root has just made to a user. By descriptor: where the
/// directory is the user's, something else may stand there by now, and root must not give that
/// away. Error(kInvalid) for what is not a socket with this name alone.
void give_socket_file(const std::filesystem::path& path, uid_t uid, gid_t gid);

}  // namespace weightfs::keeper
