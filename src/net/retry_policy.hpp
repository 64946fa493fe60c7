// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <string>

namespace weightfs::net {

struct RetryOptions {
  std::chrono::milliseconds first_delay{200};
  std::chrono::milliseconds max_delay{8'000};
  /// What a server may ask for with Retry-After; more is cut to this.
  std::chrono::milliseconds max_retry_after{60'000};
};

/// How long to wait before try number `attempt` (1 is the first retry). Exponential with full
/// jitter: uniform in [d/2, d] for d = first_delay * 2^(attempt-1), at most max_delay, so that the
/// replicas of a node pool do not come back together. What the server asked for is a floor; the
/// jitter goes above it. Pure.
[[nodiscard]] std::chrono::milliseconds retry_delay(
    const RetryOptions& options, unsigned attempt,
    std::optional<std::chrono::milliseconds> retry_after, std::mt19937_64& random);

/// Retry-After as in RFC 9110: delta-seconds or an HTTP-date relative to `now`. nullopt if neither.
[[nodiscard]] std::optional<std::chrono::milliseconds> parse_retry_after(
    const std::string& value, std::chrono::system_clock::time_point now);

}  // namespace weightfs::net
