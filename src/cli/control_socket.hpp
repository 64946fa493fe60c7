// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cli/process_user.hpp"
#include "control/listen_socket.hpp"

#include <filesystem>

namespace weightfs::cli {

/// The control socket for a daemon that runs as `user`: root makes it wherever it is to be, and the
/// user's group may connect. Error: see ListenSocket.
[[nodiscard]] control::ListenSocket make_control_socket(const std::filesystem::path& path,
                                                        const ProcessUser& user);

}  // namespace weightfs::cli
