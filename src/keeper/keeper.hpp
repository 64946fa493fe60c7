// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/log.hpp"
#include "keeper/daemon_process.hpp"
#include "keeper/exit_status.hpp"

#include <sys/types.h>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace weightfs::keeper {

struct KeeperOptions {
  std::filesystem::path mountpoint;
  /// Where daemons connect; empty where the keeper starts the daemon itself.
  std::filesystem::path socket;
  /// Who may connect besides root.
  uid_t daemon_uid = 0;
  gid_t daemon_gid = 0;
  /// Shown in /proc/mounts as the device.
  std::string source_name = "weightfs";
  /// The daemon's command line, argv[0] included; empty where somebody else starts it. It is run as
  /// daemon_uid:daemon_gid, without capabilities and with no_new_privs, its keeper socket as the
  /// descriptor whose number replaces "{keeper-fd}" in the arguments; and run again, after a
  /// growing pause, when it dies.
  std::vector<std::string> daemon_command;
  /// What else the daemon inherits. The descriptors must outlive the Keeper.
  std::vector<Inherited> inherited;
  /// A signalfd(2) of SIGHUP, which is passed on to that daemon. -1: none.
  int reload_descriptor = -1;
  /// How long that daemon has to come up (to serve requests) before it is killed and started again.
  std::chrono::milliseconds start_patience{120'000};
  /// How long it has to end by itself once it is told to, before it is killed.
  std::chrono::milliseconds stop_grace{10'000};
  /// How long it has to end once it was killed, before the connection is aborted (at a stop only),
  /// and then again before the keeper ends without it.
  std::chrono::milliseconds kill_patience{5'000};
};

/// The privileged process: mounts, holds /dev/fuse and the session memory, registers backing files,
/// supervises. No network, no parser of foreign bytes, no thread: one poll loop.
///
/// A mount left by a dead keeper ("Transport endpoint is not connected") is detached and replaced.
/// Error from the constructor: kNotFound no mount point; kInvalid not a directory; kBusy a live
/// weightfs is mounted there; kPermission not root; kUnsupported no /dev/fuse.
class Keeper {
 public:
  Keeper(KeeperOptions options, Log log);
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  /// Unmounts (lazily if it is busy) what is still mounted.
  ~Keeper();

  /// Serves until `stop` (a descriptor that becomes readable, such as a signalfd) or an unmount
  /// request of the daemon, or until the mount is gone (umount by hand). Returns the exit status.
  int run(int stop_descriptor);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace weightfs::keeper
