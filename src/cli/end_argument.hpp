// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <chrono>
#include <string>

namespace weightfs::cli {

/// Until when something holds, as a person gives it: a time, or how long from now, or neither.
struct EndArgument {
  std::string until;     ///< RFC 3339, or a date
  std::string duration;  ///< as "12h"
};

/// As the API takes it: RFC 3339, "" where neither was given. UsageError where both were, or one is
/// wrong. Pure.
[[nodiscard]] std::string end_argument(const EndArgument& end,
                                       std::chrono::system_clock::time_point now);

}  // namespace weightfs::cli
