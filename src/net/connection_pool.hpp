// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "base/synchronized.hpp"
#include "net/curl_handles.hpp"
#include "net/tls_identity.hpp"
#include "net/url.hpp"

#include <chrono>
#include <cstddef>
#include <deque>
#include <vector>

namespace weightfs::net {

/// Whom a connection is to, and as whom.
struct Peer {
  Origin origin;
  TlsIdentity tls;

  bool operator==(const Peer&) const = default;
};

/// Idle connections by peer. Each lives in a curl multi handle of its own, because a multi handle
/// is what can be woken from another thread, and because a connection that is used by one thread at
/// a time needs no lock inside curl.
///
/// Thread-safe. Owns what is idle; what was acquired belongs to the caller. `clock` must outlive
/// it.
class ConnectionPool {
 public:
  ConnectionPool(std::size_t max_idle, std::chrono::milliseconds idle_timeout, const Clock& clock);

  /// A handle with an idle connection to `peer`, the one used last, or a new one without.
  [[nodiscard]] MultiHandle acquire(const Peer& peer);
  /// Gives a handle back whose connection is alive and between two requests.
  void release(const Peer& peer, MultiHandle handle);

 private:
  struct Idle {
    Peer peer;
    MultiHandle handle;
    Clock::TimePoint since;
  };
  /// Moves what is too old or too many out of `idle`, to be closed without the lock.
  std::vector<Idle> take_surplus(std::deque<Idle>& idle) const;

  const std::size_t max_idle_;
  const std::chrono::milliseconds idle_timeout_;
  const Clock& clock_;
  Synchronized<std::deque<Idle>> idle_;  ///< oldest first
};

}  // namespace weightfs::net
