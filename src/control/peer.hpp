// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <sys/types.h>
#include <optional>
#include <string>

namespace weightfs::control {

/// Who is at the other end of a unix socket, as the kernel noted it when they connected
/// (SO_PEERCRED, unix(7)). nullopt for any other socket.
[[nodiscard]] std::optional<uid_t> peer_user(int socket) noexcept;

/// The user's name; the number where it has none here. Asks the machine's user database, which may
/// be a slow one.
[[nodiscard]] std::string user_name(uid_t user);

}  // namespace weightfs::control
