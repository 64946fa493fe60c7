// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/peer.hpp"

#include <pwd.h>
#include <sys/socket.h>
#include <vector>

namespace weightfs::control {

std::optional<uid_t> peer_user(int socket) noexcept {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  constexpr uid_t kNobodyThere = static_cast<uid_t>(-1);
  return peer.uid == kNobodyThere ? std::nullopt : std::optional(peer.uid);
}

std::string user_name(uid_t user) {
  constexpr std::size_t kEnough = 64 << 10;
  std::vector<char> words(kEnough);
  passwd entry{};
  passwd* found = nullptr;
  const bool known = ::getpwuid_r(user, &entry, words.data(), words.size(), &found) == 0;
  return known && found != nullptr ? entry.pw_name : std::to_string(user);
}

}  // namespace weightfs::control
