// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/socket_access.hpp"

#include <fmt/format.h>

#include <grp.h>
#include <sys/stat.h>
#include <vector>

namespace weightfs::control {

namespace {

std::string group_name(gid_t gid) {
  constexpr std::size_t kEnough = 64 << 10;
  std::vector<char> words(kEnough);
  group entry{};
  group* found = nullptr;
  const bool known = ::getgrgid_r(gid, &entry, words.data(), words.size(), &found) == 0;
  return known && found != nullptr ? entry.gr_name : fmt::format("{}", gid);
}

}  // namespace

std::string who_may_connect(const std::filesystem::path& socket) {
  struct stat found{};
  // Not to be seen from outside of a directory, or for its owner alone.
  if (::stat(socket.c_str(), &found) != 0 || (found.st_mode & S_IWGRP) == 0) {
    return "; run it with sudo";
  }
  return fmt::format("; run it with sudo, or as a member of the group {}",
                     group_name(found.st_gid));
}

}  // namespace weightfs::control
