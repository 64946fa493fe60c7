// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors

// What a Governor knows of the stock: counted, cleared of strays, and shown.

#include "cache/governor.hpp"

#include "base/quantity.hpp"
#include "cache/governor_state.hpp"

#include <algorithm>
#include <ranges>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace weightfs::cache {

using policy::Area;
using policy::Holding;
using snapshot::SnapshotPtr;

/// What is there already: of the snapshots that the log does not know, too.
void Governor::count(Turn& turn) {
  // What nobody can see has not gone: the order of its use is kept.
  if (!parts_.stock.readable()) return;
  const std::uint64_t generation = parts_.catalog.generation();
  const bool miscounted = miscounted_.exchange(false);
  if (std::exchange(turn.counted, generation) == generation && !miscounted) return;
  const std::vector<SnapshotPtr> snapshots = parts_.catalog.snapshots();
  SharedContent shared(snapshots);
  std::unordered_map<Digest, std::uint64_t> own;
  std::unordered_set<Digest> present;  // snapshots of which anything is there
  std::unordered_set<Digest> known;
  std::unordered_set<Digest> counted;  // of what is shared
  std::uint64_t complete_bytes = 0;
  for (const SnapshotPtr& snapshot : snapshots) {
    const Digest& key = snapshot->key();
    known.insert(key);
    for (std::size_t i = 0; i < snapshot->files().size(); ++i) {
      const fetch::Target file = target_of(snapshot, i);
      const Stock::Presence presence = parts_.stock.presence(file);
      if (presence == Stock::Presence::kNone) continue;
      present.insert(key);
      const Digest content = file.key();
      const std::uint64_t size = file.file().size;
      const bool is_shared = shared.contains(content);
      if (is_shared && !counted.insert(content).second) continue;
      if (presence == Stock::Presence::kComplete) complete_bytes += size;
      if (is_shared) {
        shared.set_present(content, true);
      } else {
        own[key] += size;
      }
    }
  }
  std::uint64_t all_bytes = 0;
  bool all_seen = true;  // what is out of sight has not gone, and is no stray
  for (const store::VolumeStatus& volume : parts_.stock.volumes()) {
    all_bytes += volume.usage.bytes;
    all_seen = all_seen && volume.state == store::VolumeState::kUsable;
  }
  state_->with([&](State& state) {
    for (const Digest& key : keys_of(state.holdings)) {
      if (!all_seen || present.contains(key)) continue;
      state.holdings.drop(key);
      state.log.drop(key);
    }
    // Of what has bytes in the store, though nobody is known to have used it, a part was looked at,
    // as when it was added. Where nothing at all is known, because the log was lost, all stays.
    const bool all_lost = state.log.begun() && !turn.all_seen;
    const auto hold = [&](std::vector<Digest> keys) {
      std::ranges::sort(keys);  // the same order in every process
      for (const Digest& key : keys) {
        if (state.holdings.find(key)) continue;
        const Area area = all_lost ? Area::kResident : area_of(state, key);
        state.holdings.use(key, area, 0);
        state.latest = key;
        state.log.use({.snapshot = key, .area = area, .time = 0});
      }
    };
    const auto owners = std::views::keys(own);
    hold({owners.begin(), owners.end()});
    hold(shared.without_holder(state.holdings));
    for (const auto& [key, bytes] : own) state.holdings.set_bytes(key, bytes);
    for (const Digest& key : keys_of(state.holdings)) {
      if (!own.contains(key)) state.holdings.set_bytes(key, 0);
    }
    state.weights.forget_if([&](const Digest& key) { return !known.contains(key); });
    state.own = std::move(own);
    state.shared = std::move(shared);
    state.shares_moved = true;
    state.settle_shares();
    state.stray_bytes = all_seen ? all_bytes - std::min(all_bytes, complete_bytes) : 0;
  });
  turn.all_seen = turn.all_seen || all_seen;
}

/// Blobs that no snapshot has go first: the state directory was lost, or is another one's.
void Governor::remove_strays() {
  if (state_->with([](State& state) { return std::exchange(state.stray_bytes, 0); }) == 0) return;
  std::unordered_set<Digest> known;
  for (const SnapshotPtr& snapshot : parts_.catalog.snapshots()) {
    for (const snapshot::File& file : snapshot->files()) {
      if (file.sha256) known.insert(*file.sha256);
    }
  }
  const std::uint64_t bytes = parts_.stock.remove_but(known);
  if (bytes > 0) {
    log_.info("evicted files that no model has: {}", readable_size(bytes));
    decisions_.evicted_strays(bytes);
  }
  state_->with([&](State& state) { state.counts.evicted_bytes += bytes; });
}

std::vector<TenantUse> Governor::tenant_uses(const State& state, std::uint64_t capacity) const {
  std::vector<TenantUse> uses;
  const policy::Tenancy shares = tenancy(state.tenants, parts_.catalog, capacity);
  for (std::size_t i = 0; i < state.tenants.size(); ++i) {
    const policy::TenantLimits& limits = shares.limits[i];
    uses.push_back({.name = state.tenants[i].name, .floor = limits.floor, .cap = limits.cap});
  }
  if (uses.empty()) return uses;
  for (const Area area : {Area::kProbation, Area::kResident}) {
    state.holdings.walk(area, [&](const Holding& holding) {
      if (const auto tenant = shares.tenant_of(holding.snapshot)) {
        uses[*tenant].bytes += holding.bytes;
      }
      return true;
    });
  }
  return uses;
}

GovernorStatus Governor::status() {
  count(*turn_.lock());
  const Volumes volumes = parts_.stock.volumes();
  const policy::Budget now = budget(volumes, {});
  const std::uint64_t capacity = cache::capacity(options_.limits, volumes);
  return state_->with([&](State& state) {
    state.settle_shares();
    GovernorStatus status = state.counts;
    status.budget = now;
    status.probation_bytes = state.holdings.bytes(Area::kProbation);
    status.resident_bytes = state.holdings.bytes(Area::kResident);
    status.tenants = tenant_uses(state, capacity);
    return status;
  });
}

}  // namespace weightfs::cache
