// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace weightfs::fetch {

/// Which comes first of the bytes that nobody waits for: what is due sooner; of what is due at the
/// same time, what has the higher priority. What is not due at any time comes last.
struct Precedence {
  static constexpr std::int64_t kNotDue = std::numeric_limits<std::int64_t>::max();

  std::int64_t due = kNotDue;  ///< seconds since 1970
  std::int64_t priority = 0;

  [[nodiscard]] bool is_due() const noexcept { return due != kNotDue; }

  /// Less comes first.
  friend std::strong_ordering operator<=>(const Precedence& a, const Precedence& b) noexcept {
    const auto by_time = a.due <=> b.due;
    return by_time != 0 ? by_time : b.priority <=> a.priority;
  }
  friend bool operator==(const Precedence&, const Precedence&) = default;
};

}  // namespace weightfs::fetch
