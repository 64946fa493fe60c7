// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"

#include <algorithm>
#include <chrono>

namespace weightfs::store {

/// When something that failed is tried again: after a few seconds, then after twice as long each
/// time, up to a minute. What fails again soon after it worked goes on where it was. A value.
class ProbeSchedule {
 public:
  static constexpr std::chrono::seconds kFirst{2};
  static constexpr std::chrono::seconds kMost{60};

  void failed(Clock::TimePoint now) noexcept {
    if (now - recovered_ > kMost) delay_ = kFirst;
    next_ = now + delay_;
    delay_ = std::min(2 * delay_, kMost);
    recovered_ = Clock::TimePoint::max();
  }
  void recovered(Clock::TimePoint now) noexcept { recovered_ = now; }
  [[nodiscard]] bool due(Clock::TimePoint now) const noexcept { return now >= next_; }

 private:
  std::chrono::seconds delay_ = kFirst;
  Clock::TimePoint next_{};
  Clock::TimePoint recovered_ = Clock::TimePoint::max();  ///< max: not since it failed
};

}  // namespace weightfs::store
