// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/listen_socket.hpp"

#include "base/error.hpp"
#include "base/unix_address.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <utility>

namespace weightfs::control {

namespace {

constexpr int kBacklog = 128;

Fd new_socket() {
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) throw_errno(errno, "socket");
  return fd;
}

/// Refuses what must not be replaced: a living listener, or a file that is no socket.
void check_replaceable(const std::filesystem::path& path) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) {
    if (errno == ENOENT) return;
    throw_errno(errno, fmt::format("socket {}", path.string()));
  }
  if (!S_ISSOCK(found.st_mode)) {
    throw Error(Errc::kInvalid, fmt::format("{} exists and is not a socket", path.string()));
  }
  try {
    (void)connect_unix(path);
  } catch (const Error& error) {
    if (error.code() == Errc::kUnavailable) return;
    throw;
  }
  throw Error(Errc::kBusy, fmt::format("another daemon listens on {}", path.string()));
}

}  // namespace

ListenSocket::ListenSocket(std::filesystem::path path, unsigned mode) : path_(std::move(path)) {
  (void)UnixAddress(path_);
  std::error_code failed;
  std::filesystem::create_directories(path_.parent_path(), failed);
  if (failed) throw_errno(failed.value(), fmt::format("create {}", path_.parent_path().string()));
  check_replaceable(path_);

  // Bound under a name of its own and renamed when it listens and has its mode: nobody can connect
  // to a socket that is not ready, and the file that is replaced is replaced in one step.
  const std::filesystem::path temporary = fmt::format("{}.{}", path_.string(), ::getpid());
  const UnixAddress address(temporary);
  (void)::unlink(temporary.c_str());
  fd_ = new_socket();
  // The file gets the mode of the unbound socket, less the umask. By path, a directory that belongs
  // to somebody else could make us change another file.
  if (::fchmod(fd_.value(), mode) != 0) throw_errno(errno, "chmod a socket");
  const mode_t mask = ::umask(0);
  const int bound = ::bind(fd_.value(), address.get(), address.size());
  const int bind_error = errno;
  ::umask(mask);
  if (bound != 0) throw_errno(bind_error, fmt::format("bind {}", path_.string()));
  struct stat ours{};
  if (::listen(fd_.value(), kBacklog) != 0 || ::lstat(temporary.c_str(), &ours) != 0 ||
      ::rename(temporary.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    (void)::unlink(temporary.c_str());
    throw_errno(error, fmt::format("listen on {}", path_.string()));
  }
  device_ = ours.st_dev;
  inode_ = ours.st_ino;
}

ListenSocket::ListenSocket(ListenSocket&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::move(other.fd_)),
      device_(other.device_),
      inode_(std::exchange(other.inode_, 0)) {
}

ListenSocket::~ListenSocket() {
  struct stat found{};
  if (inode_ == 0 || ::lstat(path_.c_str(), &found) != 0) return;
  if (found.st_dev == device_ && found.st_ino == inode_) (void)::unlink(path_.c_str());
}

Fd connect_unix(const std::filesystem::path& path) {
  const UnixAddress address(path);
  Fd fd = new_socket();
  // A blocking connect would wait without end where the queue is full.
  ::fcntl(fd.value(), F_SETFL, O_NONBLOCK);
  if (::connect(fd.value(), address.get(), address.size()) == 0) {
    ::fcntl(fd.value(), F_SETFL, 0);
    return fd;
  }
  const int error = errno;
  if (error == EAGAIN) {
    throw Error(Errc::kBusy, fmt::format("the queue of {} is full: whoever listens there takes no "
                                         "connections",
                                         path.string()));
  }
  if (error == ECONNREFUSED || error == ENOENT || error == ENOTDIR) {
    throw Error(Errc::kUnavailable, fmt::format("nobody listens on {}", path.string()));
  }
  throw_errno(error, fmt::format("connect to {}", path.string()));
}

}  // namespace weightfs::control
