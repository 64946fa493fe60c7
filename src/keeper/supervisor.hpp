// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "base/log.hpp"
#include "keeper/daemon_process.hpp"
#include "keeper/restart_policy.hpp"

#include <chrono>
#include <optional>

namespace weightfs::keeper {

/// Keeps one daemon running, driven by the keeper's loop: advance() when due() has come, reap()
/// when descriptor() is readable. Owns the process (killed by the destructor). Confined to the
/// loop's thread.
class Supervisor {
 public:
  using TimePoint = Clock::TimePoint;

  /// `grace`: from SIGTERM to SIGKILL. The first start is due at once.
  Supervisor(DaemonOptions options, std::chrono::milliseconds grace, Log log);

  /// When to call advance(); nothing while there is nothing to wait for.
  [[nodiscard]] std::optional<TimePoint> due() const noexcept { return due_; }
  /// Does what is due. Where that is a start, returns the keeper's end of the new daemon's socket,
  /// which does not block; where it is a SIGKILL, nothing.
  std::optional<Fd> advance(TimePoint now);

  [[nodiscard]] bool running() const noexcept { return process_.has_value(); }
  /// -1 while no daemon runs.
  [[nodiscard]] int descriptor() const noexcept;
  /// Takes the end of the daemon, and returns the keeper's exit status if it was the last one.
  std::optional<int> reap(TimePoint now);

  void note_hello() noexcept { hello_ = RestartPolicy::Hello::kSaid; }
  /// The daemon's socket has closed: it has the grace to end by itself, as it is about to, before
  /// it is killed. No SIGTERM: that could hit it between its last handler and exit(0).
  void expect_end(TimePoint now);
  /// SIGTERM, SIGKILL after the grace, and no other daemon.
  void stop(TimePoint now);

 private:
  std::optional<Fd> start(TimePoint now);

  DaemonOptions options_;
  std::chrono::milliseconds grace_;
  Log log_;
  RestartPolicy policy_;
  std::optional<DaemonProcess> process_;
  std::optional<TimePoint> due_;
  TimePoint started_{};
  RestartPolicy::Hello hello_ = RestartPolicy::Hello::kSilent;
  bool last_ = false;
};

}  // namespace weightfs::keeper
