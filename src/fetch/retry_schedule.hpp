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
/// A failed part's rest waits for its own delay, whatever the other connections do. Until bytes
/// come again new parts wait, too, and one connection probes alone: a source that is down is not
/// asked sixteen times at once. Connections that break together are one failure, however many they
/// are: the delay grows only where one fails that was begun after the last delay. Where the same
/// place fails twice, the next probe goes elsewhere: it may be the only one that cannot be read.
/// Bytes on any connection end the probing; a wait that the source asked for (Retry-After) is kept
/// whatever comes.
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
  [[nodiscard]] bool resting() const noexcept { return !resting_.empty(); }
  /// The byte that a probe had better not begin with.
  [[nodiscard]] std::optional<std::uint64_t> avoid() const noexcept;
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
  unsigned failures_ = 0;          ///< in a row, one after the other's delay, without a byte since
  std::uint64_t last_failed_ = 0;  ///< the first byte that the last of them did not bring
  TimePoint next_start_{};         ///< lifted by bytes
  TimePoint asked_wait_{};         ///< not lifted by bytes
  std::vector<Rest> resting_;
  std::map<std::uint64_t, TimePoint> failing_;  ///< offset that did not come, since when
};

}  // namespace weightfs::fetch
