// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "keeper/listener.hpp"

#include "base/error.hpp"
#include "base/unix_address.hpp"
#include "keeper/socket_file.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <utility>

namespace weightfs::keeper {

namespace {

constexpr int kBacklog = 4;

Fd open_socket() {
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) throw_errno(errno, "create a socket");
  return socket;
}

void remove_left_over(const std::filesystem::path& path, const UnixAddress& address) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) return;
  if (!S_ISSOCK(status.st_mode)) {
    throw Error(Errc::kBusy, path.string() + " exists and is not a socket");
  }
  const Fd probe = open_socket();
  if (::connect(probe.value(), address.get(), address.size()) == 0 || errno != ECONNREFUSED) {
    throw Error(Errc::kBusy, "another keeper listens at " + path.string());
  }
  ::unlink(path.c_str());
}

}  // namespace

Listener::Listener(std::filesystem::path path, uid_t uid, gid_t gid, Log log)
    : path_(std::move(path)), uid_(uid), log_(std::move(log)), socket_(open_socket()) {
  const UnixAddress address(path_);
  remove_left_over(path_, address);
  // The file gets the mode of the unbound socket. By path, a directory that belongs to the daemon
  // could make the keeper follow a link.
  if (::fchmod(socket_.value(), 0600) != 0) throw_errno(errno, "chmod a socket");
  if (::bind(socket_.value(), address.get(), address.size()) != 0) {
    throw_errno(errno, "bind " + path_.string());
  }
  try {
    give_socket_file(path_, uid, gid);
    if (::listen(socket_.value(), kBacklog) != 0) throw_errno(errno, "listen at " + path_.string());
  } catch (...) {
    ::unlink(path_.c_str());
    throw;
  }
}

Listener::~Listener() {
  ::unlink(path_.c_str());
}

std::optional<Fd> Listener::accept() const {
  Fd peer(::accept4(socket_.value(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!peer) return std::nullopt;
  ucred who{};
  socklen_t size = sizeof who;
  if (::getsockopt(peer.value(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 ||
      (who.uid != 0 && who.uid != uid_)) {
    log_.warning("refused a connection of uid {}, pid {}", who.uid, who.pid);
    return std::nullopt;
  }
  return peer;
}

}  // namespace weightfs::keeper
