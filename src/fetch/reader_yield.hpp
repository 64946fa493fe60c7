// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"

#include <chrono>
#include <cstdint>

namespace weightfs::fetch {

/// How fast what nobody waits for may be written while consumers read the same disk: as fast as it
/// comes while nobody reads, and else a twentieth of that, but no less than the floor. Goes by
/// samples of what others have read; what they do between two of them counts as an average, and
/// where the last is long ago they are taken to read until the next one says otherwise. Who
/// they are it does not know, only whether anybody has a file open at all.
///
/// Pure: time is a parameter. Not thread-safe.
class ReaderYield {
 public:
  using TimePoint = Clock::TimePoint;
  /// How often to sample. Apart by more than kStale, two samples say nothing of now.
  static constexpr std::chrono::milliseconds kInterval{50};
  static constexpr std::chrono::milliseconds kStale{1000};
  /// For how long after the last read it is believed that the next will come.
  static constexpr std::chrono::milliseconds kPatience{300};
  /// Less, bytes per second, is what a machine's own housekeeping reads.
  static constexpr std::uint64_t kReading = 1 << 20;
  static constexpr std::uint64_t kShare = 20;

  /// `floor` is bytes per second.
  explicit ReaderYield(std::uint64_t floor) noexcept : floor_(floor) {}

  [[nodiscard]] bool due(TimePoint now) const noexcept { return now - last_ >= kInterval; }
  struct Counts {
    std::uint64_t disk = 0;      ///< read from the disk by anybody, bytes so far
    std::uint64_t own = 0;       ///< ... by fills themselves
    std::uint64_t received = 0;  ///< by fills
    bool opened = false;         ///< somebody has a file open, and may be who reads
  };
  void sample(TimePoint now, const Counts& counts) noexcept;
  /// Bytes per second; 0: no limit.
  [[nodiscard]] std::uint64_t rate() const noexcept { return rate_; }

 private:
  const std::uint64_t floor_;
  TimePoint last_{};
  Counts before_;
  TimePoint last_read_{};
  std::uint64_t speed_ = 0;  ///< of fills while nobody reads: a moving average
  std::uint64_t rate_ = 0;
};

}  // namespace weightfs::fetch
