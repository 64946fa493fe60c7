// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "catalog/catalog.hpp"
#include "telemetry/events.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace weightfs::control {

/// Tells what becomes of leases. A lease is complete, or late, once for each time that it becomes
/// so, and after it was taken or renewed if not before; once more for one that this daemon found at
/// its start.
///
/// Thread-safe. `catalog` must outlive it.
class LeaseEvents {
 public:
  LeaseEvents(const catalog::Catalog& catalog, telemetry::Events events);

  void taken(const catalog::Lease& lease);
  void renewed(const catalog::Lease& lease);
  /// `by`: who ended it, as a name.
  void released(const catalog::Lease& lease, const std::string& by);
  void expired(const catalog::Lease& lease);
  /// How a lease fares now. Says nothing of one that was not said to be taken, or renewed, as it
  /// is: that comes first.
  struct State {
    bool complete = false;
    bool late = false;
    std::uint64_t missing = 0;  ///< bytes
  };
  void fares(const catalog::Lease& lease, const State& state);

 private:
  struct Told {
    catalog::Lease lease;
    bool complete = false;
    bool late = false;
  };
  void tell(const char* action, const catalog::Lease& lease, std::uint64_t bytes,
            const std::string& reason) const;
  [[nodiscard]] std::uint64_t bytes_of(const catalog::Lease& lease) const;
  void expect(const catalog::Lease& lease);
  void forget(const std::string& id);

  const catalog::Catalog& catalog_;
  const telemetry::Events events_;
  Synchronized<std::map<std::string, Told>> told_;  ///< by id, of those that hold
};

}  // namespace weightfs::control
