// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/control_socket.hpp"

#include "base/error.hpp"
#include "cli/predecessor.hpp"

#include <unistd.h>
#include <cerrno>

namespace weightfs::cli {

control::ListenSocket make_control_socket(const std::filesystem::path& path,
                                          const ProcessUser& user) {
  constexpr unsigned kMode = 0660;
  control::ListenSocket socket =
      after_predecessor([&] { return control::ListenSocket(path, kMode); });
  if (::geteuid() == 0 && ::lchown(path.c_str(), user.uid, user.gid) != 0) {
    throw_errno(errno, "give " + path.string() + " to " + user.name);
  }
  return socket;
}

}  // namespace weightfs::cli
