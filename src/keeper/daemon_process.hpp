// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"

#include <sys/types.h>
#include <chrono>
#include <string>
#include <vector>

namespace weightfs::keeper {

/// Where in the daemon's command line the number of its keeper socket goes.
inline constexpr const char* kSocketPlaceholder = "{keeper-fd}";

/// A descriptor that stays open in the daemon; its number replaces the placeholder in the
/// arguments.
struct Inherited {
  std::string placeholder;
  int descriptor = -1;
};

struct DaemonOptions {
  std::vector<std::string>
      command;  ///< argv[0] is looked up in PATH; kSocketPlaceholder is replaced
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<Inherited> inherited;
  std::string oom_score_adj;  ///< instead of the keeper's own; empty leaves it
};

/// A running daemon: uid and gid given, no supplementary groups, no capabilities (also as uid 0),
/// no way to gain any (no_new_privs), a session of its own, default signals, and no descriptor but
/// 0 (null), 1, 2, its socket and what it is to inherit. It is not tied to the keeper by a
/// parent-death signal: its socket closes when the keeper goes, upon which it drains and ends, as
/// one that was started apart does.
///
/// A child that cannot become the daemon says why on stderr and ends with kDaemonFatal. Confined to
/// one thread; killed and reaped by the destructor, which waits for at most kPatience.
class DaemonProcess {
 public:
  static constexpr std::chrono::milliseconds kPatience{5000};

  /// `socket` is the daemon's end. Throws Error if it cannot fork.
  DaemonProcess(const DaemonOptions& options, const Fd& socket);
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;
  ~DaemonProcess();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Becomes readable when the process has ended.
  [[nodiscard]] int descriptor() const noexcept { return process_.value(); }
  void signal(int number) const noexcept;
  /// It was killed. Where descriptor() does not become readable, a thread of it hangs.
  [[nodiscard]] bool main_thread_ended() const;
  /// Waits for the end; the status as of wait(2). To be called once at most.
  [[nodiscard]] int wait();
  /// Neither waits for it nor kills it any more: it is stuck in the kernel.
  void leave() noexcept { pid_ = -1; }

 private:
  pid_t pid_ = -1;
  Fd process_;  ///< pidfd
};

}  // namespace weightfs::keeper
