// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <chrono>

namespace weightfs {

/// Time as a parameter, so that deadlines can be tested. Thread-safe.
class Clock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  virtual ~Clock() = default;
  /// Monotonic; for deadlines and durations.
  [[nodiscard]] virtual TimePoint now() const noexcept = 0;
  /// Seconds since 1970; for records that a person or another boot reads.
  [[nodiscard]] virtual std::chrono::system_clock::time_point wall() const noexcept = 0;
};

class SystemClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const noexcept override { return std::chrono::steady_clock::now(); }
  [[nodiscard]] std::chrono::system_clock::time_point wall() const noexcept override {
    return std::chrono::system_clock::now();
  }
};

}  // namespace weightfs
