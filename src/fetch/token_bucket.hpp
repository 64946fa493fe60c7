// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"

#include <chrono>
#include <cstdint>

namespace weightfs::fetch {

/// So many bytes per second, and after a pause no more than kBurst's worth of them at once. It is
/// the virtual scheduling form of the token bucket, GCRA (ITU-T Recommendation I.371): all that is
/// kept is the time at which everything taken so far would have passed at the rate. What is taken
/// may be larger than the bucket; those that come next wait the longer.
///
/// Pure: time is a parameter, and does not go back. Exact: no byte is lost to rounding. Not
/// thread-safe.
class TokenBucket {
 public:
  using TimePoint = Clock::TimePoint;
  /// Longer than a thread oversleeps on a busy machine, so that the rate is reached; and short
  /// enough that the bytes of any second are within a tenth of it.
  static constexpr std::chrono::milliseconds kBurst{50};

  /// `rate` is bytes per second; 0: as many as one likes.
  explicit TokenBucket(std::uint64_t rate) noexcept : rate_(rate) {}

  [[nodiscard]] std::uint64_t rate() const noexcept { return rate_; }
  /// From when on take() may be called.
  [[nodiscard]] TimePoint ready_at() const noexcept { return rate_ == 0 ? TimePoint() : ready_at_; }
  void take(std::uint64_t bytes, TimePoint now) noexcept;
  /// What was taken too much stays owed.
  void set_rate(std::uint64_t rate, TimePoint now) noexcept;

 private:
  std::uint64_t rate_;
  TimePoint ready_at_{};     ///< kBurst before all that was taken has passed
  std::uint64_t carry_ = 0;  ///< of the last division: byte-nanoseconds
};

}  // namespace weightfs::fetch
