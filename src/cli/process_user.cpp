// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/process_user.hpp"

#include "base/error.hpp"

#include <pwd.h>
#include <optional>
#include <vector>

namespace weightfs::cli {

namespace {

std::optional<ProcessUser> lookup(const std::string& name) {
  std::vector<char> buffer(16 << 10);
  passwd entry = {};
  passwd* found = nullptr;
  if (::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || !found) {
    return std::nullopt;
  }
  return ProcessUser{name, found->pw_uid, found->pw_gid};
}

}  // namespace

ProcessUser find_user(const std::string& name) {
  if (!name.empty()) {
    if (auto user = lookup(name)) return *user;
    throw Error(Errc::kInvalid, "there is no user " + name + " for the daemon to run as");
  }
  for (const char* candidate : {"weightfs", "nobody"}) {
    if (auto user = lookup(candidate)) return *user;
  }
  throw Error(Errc::kInvalid, "there is neither a user weightfs nor a user nobody; give --user");
}

}  // namespace weightfs::cli
