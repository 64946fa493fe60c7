// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"

#include <sys/types.h>
#include <filesystem>
#include <utility>

namespace weightfs::control {

/// A listening unix stream socket, and, where it made it, its file. Owns both: the destructor
/// removes the file, unless another process has put its own in its place meanwhile. Confined to its
/// owner.
class ListenSocket {
 public:
  /// Creates missing parent directories (0755) and the socket with exactly `mode` (the umask of the
  /// process is set aside for a moment): whoever may write to the file may connect. A file that a
  /// dead process left behind is replaced. Error: kBusy somebody listens there; kInvalid the path
  /// is too long for a socket (107 bytes), or holds something else than a socket; kPermission, kIo.
  ListenSocket(std::filesystem::path path, unsigned mode);
  /// Takes over a listening socket that was inherited; its file is its maker's.
  explicit ListenSocket(Fd listening) noexcept : fd_(std::move(listening)) {}
  ListenSocket(ListenSocket&& other) noexcept;
  ListenSocket& operator=(ListenSocket&&) = delete;
  ListenSocket(const ListenSocket&) = delete;
  ~ListenSocket();

  [[nodiscard]] const Fd& fd() const noexcept { return fd_; }

 private:
  std::filesystem::path path_;
  Fd fd_;
  dev_t device_ = 0;  ///< with inode_, which file is ours
  ino_t inode_ = 0;
};

/// Connects, without ever waiting. Error: kUnavailable nobody listens there (or there is no such
/// file), kBusy so many wait there already that no more may, kPermission, kInvalid the path is too
/// long.
[[nodiscard]] Fd connect_unix(const std::filesystem::path& path);

}  // namespace weightfs::control
