// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/control_socket.hpp"

#include "cli/predecessor.hpp"
#include "keeper/socket_file.hpp"

#include <unistd.h>

namespace weightfs::cli {

control::ListenSocket make_control_socket(const std::filesystem::path& path,
                                          const ProcessUser& user) {
  constexpr unsigned kMode = 0660;
  control::ListenSocket socket =
      after_predecessor([&] { return control::ListenSocket(path, kMode); });
  if (::geteuid() == 0) keeper::give_socket_file(path, user.uid, user.gid);
  return socket;
}

}  // namespace weightfs::cli
