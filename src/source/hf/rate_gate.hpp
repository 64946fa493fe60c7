// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "net/http_client.hpp"

#include <chrono>
#include <optional>
#include <random>
#include <stop_token>

namespace weightfs::source {

/// How long a server that counts requests wants not to be asked, for all who ask it: of the
/// headers RateLimit (draft-ietf-httpapi-ratelimit-headers: r requests are left, t seconds until
/// there are more) and Retry-After. Whoever comes after the last one that was left waits here and
/// not at the server. What was asked for is exceeded at random by up to a quarter, so that the
/// nodes behind one address do not come back together.
///
/// Thread-safe.
class RateGate {
 public:
  /// What `head` says: every answer goes through here.
  void heard(const net::ResponseHead& head);
  /// How much longer; nullopt: go on.
  [[nodiscard]] std::optional<std::chrono::milliseconds> closed_for() const;
  /// Waits until it is open, or stop is requested, or `deadline` would be missed anyway; false
  /// unless it is open.
  bool pass(std::chrono::steady_clock::time_point deadline, const std::stop_token& stop) const;

 private:
  struct State {
    std::chrono::steady_clock::time_point opens;
    std::mt19937_64 random{std::random_device{}()};
  };
  Synchronized<State> state_;
};

/// The wait that `head` asks for: of RateLimit where nothing is left, else of Retry-After where
/// its status is 429, a second at least and an hour at most. Pure.
[[nodiscard]] std::optional<std::chrono::milliseconds> asked_wait(const net::ResponseHead& head);

}  // namespace weightfs::source
