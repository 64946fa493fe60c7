// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/synchronized.hpp"
#include "cache/evictor.hpp"
#include "cache/limits.hpp"
#include "cache/use_log.hpp"
#include "catalog/catalog.hpp"
#include "fetch/room.hpp"
#include "policy/holdings.hpp"
#include "policy/references.hpp"
#include "policy/room.hpp"
#include "store/store.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace weightfs::cache {

struct GovernorOptions {
  policy::Admission admission = policy::Admission::kSecondReference;
  Limits limits;
  /// How long after a flip the revision stays that a name would be rolled back to.
  std::chrono::seconds rollback_window{0};
  std::filesystem::path use_log;
};

struct GovernorStatus {
  policy::Budget budget;
  std::uint64_t probation_bytes = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t evictions = 0;  ///< snapshots
  std::uint64_t evicted_bytes = 0;
  std::uint64_t refused = 0;                    ///< files that were streamed for want of room
  std::map<policy::Guard, std::uint64_t> kept;  ///< at the last refusal: bytes that could not go
};

/// Carries the policy out on this node's store: who may write to it, and what goes so that they
/// can. The decisions are those of policy::make_room and policy::References, which a replay makes
/// from the same calls.
///
/// Thread-safe. One claim or eviction at a time: the room made for one is not given to another.
/// That lock is held across what the store does for it (unlinking, allocating), and comes before
/// the locks of store and catalog. What is given must outlive it.
class Governor final : public fetch::Room {
 public:
  struct Parts {
    store::Store& store;
    const catalog::Catalog& catalog;
    const Clock& clock;
    EvictionObserver& observer;
  };
  Governor(Parts parts, GovernorOptions options, Log log);
  Governor(const Governor&) = delete;
  Governor& operator=(const Governor&) = delete;
  ~Governor() override;

  /// A consumer opens a file of it; closed() must follow some day. Cheap: before every open.
  void opened(const snapshot::SnapshotPtr& snapshot, std::size_t file_index,
              const std::string& consumer);
  /// Somebody had it open before this daemon was there.
  void adopted(const Digest& snapshot_key, std::uint32_t opens);
  void closed(const Digest& snapshot_key);

  /// Somebody else took bytes out of the store, or models out of the catalog: what is held is
  /// counted anew.
  void store_changed() { turn_.lock()->stock_taken = false; }

  /// A person or a scheduler wants it kept (warm, pin, lease): admitted at once. Error(kNoSpace),
  /// with the numbers, where it cannot fit whatever goes.
  void admit(const snapshot::SnapshotPtr& snapshot);

  [[nodiscard]] bool claim(const fetch::Target& target, const std::function<void()>& take) override;

  /// As Evictor::evict; shared blobs stay for whoever else has bytes in the store.
  Evicted evict(const snapshot::SnapshotPtr& snapshot, Evictor::Do what);

  /// Others have filled the disk, or the limits are tighter than they were: what has to go goes,
  /// as much of it as can.
  void keep_limits();

  [[nodiscard]] GovernorStatus status();

 private:
  struct State;
  struct Turn {  ///< of whoever makes or takes room
    bool stock_taken = false;
  };

  [[nodiscard]] std::int64_t now() const;  ///< seconds since 1970
  [[nodiscard]] bool admitted(const State& state, const Digest& snapshot_key) const;
  [[nodiscard]] policy::Area area_of(const State& state, const Digest& snapshot_key) const;
  [[nodiscard]] policy::Area unused_area(const State& state, const Digest& snapshot_key) const;
  void refer(State& state, const Digest& snapshot_key, const std::string& consumer);
  void note_use(State& state, const Digest& snapshot_key, policy::Area area);
  [[nodiscard]] std::optional<policy::Guard> guard_of(const State& state,
                                                      const policy::Holding& holding) const;
  [[nodiscard]] std::optional<policy::Guard> use_of_files(
      const snapshot::SnapshotPtr& snapshot) const;
  /// `capacity`: in place of the one that the limits give.
  using Capacity = std::optional<std::uint64_t>;
  [[nodiscard]] policy::Budget budget(Capacity capacity = {}) const;
  [[nodiscard]] policy::Plan plan(const policy::Claim& claim, Capacity capacity = {}) const;
  /// Evicts until the claim fits; or says why it does not.
  [[nodiscard]] std::optional<policy::Plan> make_room(const policy::Claim& claim,
                                                      Capacity capacity = {});
  void take_or_evict(const policy::Claim& claim, const std::function<void()>& take);
  Evicted evict_shared(const snapshot::SnapshotPtr& snapshot, Evictor::Do what);
  void drop(const Digest& snapshot_key);
  void take_out(const Digest& snapshot_key);
  bool refuse(const fetch::Target& target, const policy::Plan& plan);
  void take_stock();
  void remove_strays();
  void rewrite_log(State& state);

  const Parts parts_;
  const Evictor evictor_;
  const GovernorOptions options_;
  const Log log_;
  Synchronized<Turn> turn_;  ///< before state_ in lock order
  std::unique_ptr<Synchronized<State>> state_;
};

}  // namespace weightfs::cache
