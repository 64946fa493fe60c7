// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "base/log.hpp"
#include "keeper/daemon_process.hpp"
#include "keeper/restart_policy.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

namespace weightfs::keeper {

struct SupervisorOptions {
  DaemonOptions daemon;
  std::chrono::milliseconds start_patience{};  ///< from its start to note_up(), else SIGKILL
  std::chrono::milliseconds stop_grace{};      ///< from SIGTERM to SIGKILL
  /// How long a killed daemon whose threads hang in the kernel is waited for. At a stop: from
  /// SIGKILL to abort_connection, and from that to the end without it. Else: until another starts.
  std::chrono::milliseconds kill_patience{};
  /// Makes the kernel fail every request, those included that the daemon itself waits for.
  std::function<void()> abort_connection;
};

/// Keeps one daemon running, driven by the keeper's loop: advance() when due() has come, reap()
/// when descriptor() is readable. Owns the process (killed by the destructor). Confined to the
/// loop's thread.
class Supervisor {
 public:
  using TimePoint = Clock::TimePoint;

  /// The first start is due at once.
  Supervisor(SupervisorOptions options, Log log);

  /// When to call advance(); nothing while there is nothing to wait for.
  [[nodiscard]] std::optional<TimePoint> due() const noexcept;
  /// Does what is due. Where that is a start, returns the keeper's end of the new daemon's socket,
  /// which does not block; else nothing.
  std::optional<Fd> advance(TimePoint now);

  /// False, too, when a killed one was waited for long enough.
  [[nodiscard]] bool running() const noexcept { return process_.has_value(); }
  /// -1 while no daemon runs.
  [[nodiscard]] int descriptor() const noexcept;
  /// Takes the end of the daemon, and returns the keeper's exit status if it was the last one.
  std::optional<int> reap(TimePoint now);
  /// To be asked about once a second. The daemon was killed, by whomever, and a thread of it hangs
  /// in the kernel (a network mount that is dead, a FUSE source that does not answer), so that its
  /// end does not come; the patience is over. reap() then leaves it behind.
  [[nodiscard]] bool hangs(TimePoint now);
  /// Daemons that were left behind and still hang.
  [[nodiscard]] std::size_t left_behind();

  /// Passes SIGHUP on to the daemon, if it serves: one that does not reads its configuration
  /// anyway.
  void reload() const noexcept;
  /// The daemon serves. Until then it has start_patience.
  void note_up(TimePoint now) noexcept;
  /// The daemon's socket has closed: it has the grace to end by itself, as it is about to, before
  /// it is killed. No SIGTERM: that could hit it between its last handler and exit(0).
  void expect_end(TimePoint now);
  /// SIGTERM, SIGKILL after the grace, and no other daemon.
  void stop(TimePoint now);

 private:
  enum class Step { kStart, kKill, kAbort, kLeave };
  struct Due {
    TimePoint at;
    Step step;
  };

  std::optional<Fd> start(TimePoint now);
  std::optional<int> after_end(int status, pid_t pid, TimePoint now);

  SupervisorOptions options_;
  Log log_;
  RestartPolicy policy_;
  std::optional<DaemonProcess> process_;
  std::optional<Due> due_;
  std::optional<TimePoint> hanging_since_;
  std::vector<pid_t> left_behind_;  ///< to be reaped one day
  TimePoint started_{};
  std::optional<TimePoint> up_;  ///< since when it serves
  bool last_ = false;
};

}  // namespace weightfs::keeper
