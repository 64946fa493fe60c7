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

namespace weightfs::keeper {

struct SupervisorOptions {
  DaemonOptions daemon;
  std::chrono::milliseconds start_patience{};  ///< from its start to note_up(), else SIGKILL
  std::chrono::milliseconds stop_grace{};      ///< from SIGTERM to SIGKILL
  /// At a stop: from SIGKILL to abort_connection, and from that to the end without it.
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

  /// The daemon serves. Until then it has start_patience.
  void note_up() noexcept;
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

  SupervisorOptions options_;
  Log log_;
  RestartPolicy policy_;
  std::optional<DaemonProcess> process_;
  std::optional<Due> due_;
  TimePoint started_{};
  RestartPolicy::Life life_ = RestartPolicy::Life::kSilent;
  bool last_ = false;
};

}  // namespace weightfs::keeper
