// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "base/synchronized.hpp"
#include "catalog/catalog.hpp"
#include "control/lease_events.hpp"
#include "fetch/fetcher.hpp"
#include "fetch/warmer.hpp"
#include "source/source_pool.hpp"
#include "store/store.hpp"

#include <condition_variable>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace weightfs::control {

/// Sees to it that what is leased is there in time: has what is missing of it fetched, what is due
/// first before the rest; tries again where that failed; and stops where nobody leases it any more.
/// Leases of an earlier daemon are taken up with the start. Also takes leases that are over out of
/// their file. Says how they fare. Looks once a second.
///
/// Thread-safe. Has one thread ("leases"). Everything in Parts must outlive it.
class LeaseWarmer {
 public:
  struct Parts {
    catalog::Catalog& catalog;
    store::Store& store;
    fetch::Fetcher& fetcher;
    fetch::Warmer& warmer;
    source::SourcePool& sources;
    LeaseEvents& events;
    const Clock& clock;
  };
  explicit LeaseWarmer(const Parts& parts);

  /// The leases have changed: looks at once.
  void look_again();
  /// Takes those that are over out of their file, as far as it can be written.
  void expire() noexcept;

  /// With how many bytes per second what is leased has come lately; nullopt while nothing is
  /// missing, or it is too early to say.
  [[nodiscard]] std::optional<double> pace() const;
  /// Why the snapshot is not being fetched; empty where nothing is known to be wrong.
  [[nodiscard]] std::string error(const Digest& snapshot_key) const;

 private:
  /// What the lease of a snapshot that is due first says.
  struct Due {
    fetch::Precedence precedence;
    std::string lease;
    std::uint64_t bandwidth = 0;  ///< bytes per second; 0: no limit
    bool operator==(const Due&) const = default;
  };
  struct Watched {
    Due due;
    std::optional<Clock::TimePoint> retry;  ///< started, but not again before
    std::string error;                      ///< of the last start
  };
  /// What was missing when it was last looked at.
  struct Sample {
    Clock::TimePoint time;
    std::set<Digest> snapshots;
    std::uint64_t missing = 0;
  };
  struct State {
    bool changed = false;
    std::unordered_map<Digest, Watched> watched;  ///< by snapshot
    std::optional<double> pace;
  };

  void run(const std::stop_token& stop);
  void look();
  /// A leased snapshot as it is found.
  struct Holding {
    snapshot::SnapshotPtr snapshot;
    bool complete = false;
    std::uint64_t missing = 0;  ///< bytes
  };
  using Holdings = std::map<Digest, Holding>;  ///< of the snapshots that are known
  [[nodiscard]] Holdings holdings_of(const std::map<Digest, Due>& due) const;
  void say_how_they_fare(const std::vector<catalog::Lease>& leases, const Holdings& holdings);
  void let_go(const std::set<Digest>& leased);
  [[nodiscard]] static std::map<Digest, Due> due_snapshots(
      const std::vector<catalog::Lease>& leases);
  void fetch(const snapshot::SnapshotPtr& snapshot, const Due& due);
  [[nodiscard]] std::shared_ptr<fetch::RateLimiter> pace_of(const Due& due);
  void forget_paces(const std::vector<catalog::Lease>& leases);
  void measure(Sample now);

  const Parts parts_;
  Synchronized<State> state_;
  std::condition_variable_any wake_;
  // Of the thread.
  std::optional<Sample> last_;
  struct Pace {
    std::uint64_t rate = 0;
    std::shared_ptr<fetch::RateLimiter> limiter;
  };
  std::map<std::string, Pace> paces_;  ///< by lease: what it leases comes at one pace in all
  std::jthread thread_;
};

}  // namespace weightfs::control
