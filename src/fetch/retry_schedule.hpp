// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/byte_range.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "net/retry_policy.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <vector>

namespace weightfs::fetch {

/// When what failed of one fill may be asked for again.
///
/// A failed part's rest waits for its own delay, whatever the other connections do. New parts wait as
/// well until bytes come again, and then one connection probes alone: a source that is down is not
/// asked sixteen times at once. Bytes on any connection end that. A wait that the source asked for
/// (Retry-After) is kept even so.
///
/// Pure: time is a parameter. Not thread-safe.
class RetrySchedule {
 public:
  using TimePoint = Clock::TimePoint;

  RetrySchedule(const net::RetryOptions& options, std::uint64_t seed);

  void on_bytes(ByteRange received);
  /// Keeps `rest`, what the failed part did not bring, until take_due() returns it.
  void on_failure(ByteRange rest, const TransientError& error, TimePoint now);

  [[nodiscard]] bool may_start(TimePoint now) const noexcept;
  [[nodiscard]] bool probing() const noexcept { return failures_ > 0; }
  /// The rests whose delay is over.
  [[nodiscard]] std::vector<ByteRange> take_due(TimePoint now);
  /// Forgets the rests: what they are rests of is planned anew.
  void drop_rests() noexcept { resting_.clear(); }
  /// Something waits for time to pass.
  [[nodiscard]] bool waiting(TimePoint now) const noexcept {
    return !resting_.empty() || !may_start(now);
  }
  /// Since when one and the same byte has failed again and again although others came.
  [[nodiscard]] std::optional<TimePoint> failing_since() const noexcept;
  /// Nobody wants anything any more: the next failure is a first one.
  void forget_failures() noexcept;

 private:
  struct Rest {
    ByteRange range;
    TimePoint due;
  };

  net::RetryOptions options_;
  std::mt19937_64 random_;
  unsigned failures_ = 0;  ///< without a byte since
  TimePoint next_start_{};  ///< lifted by bytes
  TimePoint asked_wait_{};  ///< not lifted by bytes
  std::vector<Rest> resting_;
  std::map<std::uint64_t, TimePoint> failing_;  ///< offset that did not come, since when
};

}  // namespace weightfs::fetch
