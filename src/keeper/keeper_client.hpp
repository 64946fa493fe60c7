// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"

#include <sys/types.h>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace weightfs::keeper {

/// What the keeper hands to each daemon that says hello.
struct Session {
  Fd fuse;    ///< /dev/fuse of the mounted connection
  Fd memory;  ///< SessionMemory
  pid_t keeper_pid = 0;
  std::string mountpoint;
};

/// The daemon's end of the keeper's protocol: fixed-size messages over a SOCK_SEQPACKET unix
/// socket, descriptors by SCM_RIGHTS. Thread-safe (one call at a time). A keeper that is gone is
/// Error(kUnavailable) from every call.
class KeeperClient {
 public:
  /// Takes a connected socket, inherited (where `mount` started both) or from connect().
  explicit KeeperClient(Fd socket);
  [[nodiscard]] static KeeperClient connect(const std::filesystem::path& socket);
  KeeperClient(KeeperClient&&) noexcept;
  ~KeeperClient();

  /// First call. Error(kBusy) while another daemon is connected.
  [[nodiscard]] Session hello();
  /// Registers a descriptor (regular file, O_RDONLY) for passthrough: FUSE_DEV_IOC_BACKING_OPEN.
  /// Error: kUnsupported (kernel without passthrough, or a filesystem that cannot: overlayfs), kIo.
  [[nodiscard]] std::int32_t open_backing(const Fd& file);
  void close_backing(std::int32_t backing_id);
  /// Ids that were opened and not closed, by whichever daemon.
  [[nodiscard]] std::vector<std::int32_t> open_backings();
  /// The kernel has answered INIT: raise the read-ahead of the mount to `kilobytes`.
  void set_read_ahead(std::uint32_t kilobytes);
  /// Asks the keeper to unmount and to end (the daemon ends by itself afterwards). `lazy` detaches
  /// a mount that is busy; else Error(kBusy).
  enum class Detach { kNo, kLazy };
  void unmount(Detach detach);
  /// Hangs up (POLLHUP) when the keeper is gone; for poll(). Readable while an answer is on its
  /// way.
  [[nodiscard]] int descriptor() const noexcept;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace weightfs::keeper
