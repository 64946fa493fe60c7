// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/synchronized.hpp"
#include "cache/decision_events.hpp"
#include "cache/limits.hpp"
#include "cache/open_snapshots.hpp"
#include "cache/stock.hpp"
#include "cache/tenants.hpp"
#include "cache/use_log.hpp"
#include "catalog/catalog.hpp"
#include "fetch/target.hpp"
#include "policy/holdings.hpp"
#include "policy/references.hpp"
#include "policy/room.hpp"
#include "telemetry/events.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace weightfs::cache {

struct GovernorOptions {
  policy::Admission admission = policy::Admission::kSecondReference;
  Limits limits;
  /// How long after a flip the revision stays that a name would be rolled back to.
  std::chrono::seconds rollback_window{0};
  std::vector<Tenant> tenants;
  std::filesystem::path use_log;
  UseLog::Writing writing = UseLog::Writing::kFile;  ///< of the log of uses
};

struct TenantUse {
  std::string name;
  std::uint64_t floor = 0;  ///< bytes
  std::uint64_t cap = 0;    ///< bytes
  std::uint64_t bytes = 0;  ///< that it has
};

struct GovernorStatus {
  policy::Budget budget;
  std::uint64_t probation_bytes = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t evictions = 0;  ///< snapshots
  std::uint64_t evicted_bytes = 0;
  std::uint64_t refused = 0;                    ///< files that were streamed for want of room
  std::map<policy::Guard, std::uint64_t> kept;  ///< at the last refusal: bytes that could not go
  std::vector<TenantUse> tenants;
};

/// Carries the policy out on a stock: who may add to it, and what goes so that they can. The
/// decisions are those of policy::make_room and policy::References, which a replay makes from the
/// same calls.
///
/// Thread-safe. One claim or eviction at a time: the room made for one is not given to another.
/// That lock is held across what the stock does for it (unlinking, allocating), and comes before
/// the locks of store and catalog. What is given must outlive it.
class Governor final {
 public:
  struct Parts {
    Stock& stock;
    const catalog::Catalog& catalog;
    const OpenSnapshots& open;
    const Clock& clock;
    telemetry::Events events = {};
  };
  Governor(Parts parts, GovernorOptions options, Log log);
  Governor(const Governor&) = delete;
  Governor& operator=(const Governor&) = delete;
  ~Governor();

  /// A consumer opens a file of it. Cheap: before every open.
  void used(const snapshot::SnapshotPtr& snapshot, std::size_t file_index,
            const std::string& consumer);

  /// Somebody else took bytes out of the stock: what is held is counted anew, by whoever comes
  /// next.
  void stock_changed() noexcept { miscounted_ = true; }

  /// A person or a scheduler wants it kept (warm, pin, lease): admitted at once. Error(kNoSpace),
  /// with the numbers, where it cannot fit whatever goes.
  void admit(const snapshot::SnapshotPtr& snapshot);
  /// All of these are to be kept, whatever comes: as admit, but they must fit side by side, and
  /// beside what pins and leases keep and have yet to get. For a pin or a lease, before it is
  /// taken; one that is renewed still counts once.
  void reserve(const std::vector<snapshot::SnapshotPtr>& snapshots);

  /// Instead of those of the options.
  void set_tenants(std::vector<Tenant> tenants);

  /// As fetch::Room::claim.
  [[nodiscard]] bool claim(const fetch::Target& target, const std::function<void()>& take);

  /// As fetch::Room::write_again.
  void write_again(const fetch::Target& target, const std::function<void()>& write);

  /// Others have filled the disk, or the limits are tighter than they were: what has to go goes,
  /// as much of it as can.
  void keep_limits();

  [[nodiscard]] GovernorStatus status();

 private:
  struct State;
  struct Turn {                            ///< of whoever makes or takes room
    std::optional<std::uint64_t> counted;  ///< the catalog's generation when all was counted
    bool all_seen = false;                 ///< once, at least
  };

  [[nodiscard]] std::int64_t now() const;  ///< seconds since 1970
  [[nodiscard]] bool admitted(const State& state, const Digest& snapshot_key) const;
  [[nodiscard]] policy::Area area_of(const State& state, const Digest& snapshot_key) const;
  [[nodiscard]] bool kept(const Digest& snapshot_key) const;
  void check_fits(const snapshot::SnapshotPtr& snapshot) const;
  void prove(const snapshot::SnapshotPtr& snapshot);
  [[nodiscard]] policy::References::Seen refer(State& state, const Digest& snapshot_key,
                                               const std::string& consumer);
  void note_use(State& state, const Digest& snapshot_key, policy::Area area);
  [[nodiscard]] std::optional<policy::Guard> guard_of(State& state,
                                                      const policy::Holding& holding) const;
  [[nodiscard]] std::optional<policy::Guard> use_of_files(
      State& state, const snapshot::SnapshotPtr& snapshot) const;
  [[nodiscard]] std::uint64_t missing_bytes(const fetch::Target& file) const;
  [[nodiscard]] std::uint64_t missing_bytes(const snapshot::SnapshotPtr& snapshot) const;
  [[nodiscard]] bool any_present(const snapshot::SnapshotPtr& snapshot) const;
  /// `capacity`: in place of the one that the limits give.
  using Capacity = std::optional<std::uint64_t>;
  [[nodiscard]] policy::Budget budget(Capacity capacity = {}) const;
  using Volumes = std::vector<store::VolumeStatus>;
  [[nodiscard]] policy::Budget budget(const Volumes& volumes, Capacity capacity) const;
  /// `spared`: never victims, whatever guards them.
  [[nodiscard]] policy::Plan plan(const policy::Claim& claim, Capacity capacity = {},
                                  const std::unordered_set<Digest>& spared = {}) const;
  [[nodiscard]] policy::Plan plan_one_volume(const policy::Claim& claim);
  /// Evicts until the claim fits; or says why it does not.
  [[nodiscard]] std::optional<policy::Plan> make_room(const policy::Claim& claim,
                                                      Capacity capacity = {});
  [[nodiscard]] std::vector<TenantUse> tenant_uses(const State& state,
                                                   std::uint64_t capacity) const;
  void take_or_evict(const policy::Claim& claim, const std::function<void()>& take);
  [[nodiscard]] bool evict_for(policy::Claim claim);
  void take_out(const Digest& snapshot_key, const policy::Claim& claim);
  [[nodiscard]] bool stays_for_others(State& state, const Digest& content,
                                      const Digest& snapshot_key);
  [[nodiscard]] std::uint64_t remove_files(const snapshot::SnapshotPtr& snapshot);
  bool refuse(const fetch::Target& target, const policy::Plan& plan);
  void count(Turn& turn);
  void remove_strays();
  void rewrite_log(State& state);

  const Parts parts_;
  const GovernorOptions options_;
  const Log log_;
  const DecisionEvents decisions_;
  std::atomic<bool> miscounted_ = false;  ///< what is held may be more or less than was counted
  Synchronized<Turn> turn_;               ///< before state_ in lock order
  std::unique_ptr<Synchronized<State>> state_;
};

}  // namespace weightfs::cache
