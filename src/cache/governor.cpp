// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cache/governor.hpp"

#include "base/error.hpp"
#include "base/quantity.hpp"
#include "cache/governor_state.hpp"
#include "cache/shortage.hpp"
#include "snapshot/reference.hpp"

#include <algorithm>
#include <chrono>
#include <ranges>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace weightfs::cache {

namespace {

using policy::Admission;
using policy::Area;
using policy::Guard;
using policy::Holding;
using policy::References;
using snapshot::SnapshotPtr;

/// What a fill writes beside the file, which has its place: maps, parts, the index; bytes, and
/// plenty.
constexpr std::uint64_t kMoreThanItsPlace = 1 << 20;

}  // namespace

Governor::Governor(Parts parts, GovernorOptions options, Log log)
    : parts_(parts),
      options_(std::move(options)),
      log_(std::move(log)),
      decisions_(parts.events, parts.catalog) {
  State state(options_, log_);
  UseLog::Memory memory = state.log.take();
  if (options_.admission != Admission::kNever) {
    for (const References::Record& record : memory.references) state.references.restore(record);
  }
  for (const UseLog::Use& use : memory.uses) {
    if (!parts_.catalog.snapshot(use.snapshot)) continue;
    state.holdings.use(use.snapshot, use.area, use.time);
    state.latest = use.snapshot;
  }
  state_ = std::make_unique<Synchronized<State>>(std::move(state));
}

Governor::~Governor() = default;

std::int64_t Governor::now() const {
  return std::chrono::duration_cast<std::chrono::seconds>(parts_.clock.wall().time_since_epoch())
      .count();
}

/// For good, not on probation.
bool Governor::admitted(const State& state, const Digest& snapshot_key) const {
  return options_.admission == Admission::kAlways || state.references.proven(snapshot_key) ||
         kept(snapshot_key);
}

Area Governor::area_of(const State& state, const Digest& snapshot_key) const {
  return admitted(state, snapshot_key) ? Area::kResident : Area::kProbation;
}

/// The order is written down where it changes: one consumer that opens file after file is one line.
void Governor::note_use(State& state, const Digest& snapshot_key, Area area) {
  const Holding* before = state.holdings.find(snapshot_key);
  const bool changes = !before || before->area < area || state.latest != snapshot_key;
  const std::int64_t now = this->now();
  state.holdings.use(snapshot_key, area, now);
  state.latest = snapshot_key;
  if (!changes) return;
  state.shares_moved = true;
  // Where it is now, which may be further up than this use alone would bring it.
  area = state.holdings.find(snapshot_key)->area;
  state.log.use({.snapshot = snapshot_key, .area = area, .time = now});
  if (state.log.wants_rewrite()) rewrite_log(state);
}

void Governor::used(const SnapshotPtr& snapshot, std::size_t file_index,
                    const std::string& consumer) {
  const Digest& key = snapshot->key();
  const bool complete =
      parts_.stock.presence(target_of(snapshot, file_index)) == Stock::Presence::kComplete;
  auto seen = References::Seen::kAgain;
  Area area{};
  state_->with([&](State& state) {
    if (!state.weights.is_use(*snapshot, file_index)) return;
    if (options_.admission != Admission::kNever) seen = refer(state, key, consumer);
    area = area_of(state, key);
    // Also where all that it has is shared with others, and was fetched for them.
    if (complete || state.holdings.find(key)) note_use(state, key, area);
  });
  decisions_.referred(*snapshot, seen, area, consumer);
}

References::Seen Governor::refer(State& state, const Digest& snapshot_key,
                                 const std::string& consumer) {
  const References::Seen seen = state.references.refer(snapshot_key, consumer);
  switch (seen) {
    case References::Seen::kFirst:
    case References::Seen::kSecond:
      state.log.reference(state.references.record(snapshot_key));
      break;
    case References::Seen::kAgain:
    case References::Seen::kProven:
      break;
  }
  return seen;
}

void Governor::prove(const SnapshotPtr& snapshot) {
  const Digest& key = snapshot->key();
  const bool there = any_present(snapshot);  // of what is not, the first claim is the first use
  const bool news = state_->with([&](State& state) {
    const bool proven = state.references.proven(key);
    state.references.prove(key);
    state.log.reference(state.references.record(key));
    if (there || state.holdings.find(key)) note_use(state, key, Area::kResident);
    return !proven;
  });
  if (news) decisions_.asked_for(*snapshot);
}

void Governor::set_tenants(std::vector<Tenant> tenants) {
  state_->with([&](State& state) { state.tenants = std::move(tenants); });
}

bool Governor::claim(const fetch::Target& target, const std::function<void()>& take) {
  const Digest& key = target.snapshot->key();
  auto turn = turn_.lock();
  count(*turn);
  policy::Claim file{.snapshot = key, .bytes = missing_bytes(target)};
  bool begins = false;
  bool keeps = true;
  state_->with([&](State& state) {
    state.settle_shares();
    file.area = area_of(state, key);
    const Holding* held = state.holdings.find(key);
    begins = !held || held->bytes == 0;
    keeps = options_.admission != Admission::kNever || admitted(state, key);
  });
  if (!keeps) return false;
  if (begins) {
    // Half a model helps nobody: the whole has to fit, before the first of it is kept.
    policy::Claim whole = file;
    whole.bytes = missing_bytes(target.snapshot);
    const policy::Plan fits = plan(whole);
    if (!fits.fits) return refuse(target, fits);
  }
  if (const auto why = make_room(file)) return refuse(target, *why);
  take_or_evict(file, take);
  state_->with([&](State& state) {
    note_use(state, key, file.area);
    if (file.bytes > 0) state.add(target, file.bytes);
  });
  return true;
}

void Governor::write_again(const fetch::Target& target, const std::function<void()>& write) {
  const Digest& key = target.snapshot->key();
  auto turn = turn_.lock();
  count(*turn);
  const Area area = state_->with([&](const State& state) { return area_of(state, key); });
  take_or_evict({.snapshot = key, .area = area}, write);
}

bool Governor::refuse(const fetch::Target& target, const policy::Plan& plan) {
  log_.info("{} of {} is streamed past the disk: {}", target.file().path,
            snapshot::shown_source(target.snapshot->source()), describe_shortage(plan));
  decisions_.refused(target, plan);
  state_->with([&](State& state) {
    ++state.counts.refused;
    state.counts.kept = plan.kept;
  });
  return false;
}

policy::Plan Governor::plan(const policy::Claim& claim, Capacity capacity,
                            const std::unordered_set<Digest>& spared) const {
  const Volumes volumes = parts_.stock.volumes();
  policy::Budget budget = this->budget(volumes, capacity);
  // What shares are of: it must not change with what others do to the disk.
  const std::uint64_t shared_out = cache::capacity(options_.limits, volumes);
  return state_->with([&](State& state) {
    state.settle_shares();
    budget.used -= std::min(budget.used, state.stray_bytes);
    const auto guard = [&](const Holding& holding) {
      return spared.contains(holding.snapshot) ? Guard::kLeased : guard_of(state, holding);
    };
    return policy::make_room(state.holdings, budget, claim,
                             {.guard_of = guard,
                              .next_use = {},
                              .tenancy = tenancy(state.tenants, parts_.catalog, shared_out)});
  });
}

std::optional<policy::Plan> Governor::make_room(const policy::Claim& claim, Capacity capacity) {
  const policy::Budget now = budget(capacity);
  if (now.used + claim.bytes > now.capacity) remove_strays();
  for (;;) {
    policy::Plan next = plan(claim, capacity);
    if (next.fits && next.victims.empty()) next = plan_one_volume(claim);
    if (!next.fits) return next;
    if (next.victims.empty()) return std::nullopt;
    for (const Digest& victim : next.victims) take_out(victim, claim);
    // Again: what a victim shared with others has stayed, so it may take more than was planned.
  }
}

/// Gives back what it takes, and more where more may go. False: nothing has gone.
bool Governor::evict_for(policy::Claim claim) {
  const std::uint64_t least = std::max<std::uint64_t>(claim.bytes, 1);
  // What strays gave back in vain for the more counts for the least.
  const std::uint64_t full = budget().used;
  claim.bytes = std::max(least, kMoreThanItsPlace);
  if (!make_room(claim, full)) return true;
  claim.bytes = least;
  return !make_room(claim, full);
}

/// A disk may be full although its numbers do not say so: quotas, metadata, others who are faster.
void Governor::take_or_evict(const policy::Claim& claim, const std::function<void()>& take) {
  try {
    return take();
  } catch (const Error& error) {
    if (error.code() != Errc::kNoSpace || !evict_for(claim)) throw;
    log_.warning("{}; trying again after eviction", error.what());
  }
  take();
}

void Governor::take_out(const Digest& snapshot_key, const policy::Claim& claim) {
  if (const SnapshotPtr snapshot = parts_.catalog.snapshot(snapshot_key)) {
    const std::uint64_t bytes = remove_files(snapshot);
    log_.info("evicted {}, revision {}: {}", snapshot::shown_source(snapshot->source()),
              snapshot->revision(), readable_size(bytes));
    decisions_.evicted(*snapshot, bytes, claim);
    state_->with([&](State& state) {
      ++state.counts.evictions;
      state.counts.evicted_bytes += bytes;
    });
  }
  state_->with([&](State& state) { state.drop(snapshot_key); });
}

/// But for what another snapshot has that is held: that goes with the last of them.
bool Governor::stays_for_others(State& state, const Digest& content, const Digest& snapshot_key) {
  bool stays = false;
  for (const Digest& other : state.shared.others(content, snapshot_key)) {
    // One that must not go may have come by it only through this one. From now on it has it.
    if (!state.holdings.find(other) && guard_of(state, {.snapshot = other})) {
      note_use(state, other, area_of(state, other));
    }
    stays = stays || state.holdings.find(other) != nullptr;
  }
  if (!stays) state.shared.set_present(content, false);
  return stays;
}

std::uint64_t Governor::remove_files(const SnapshotPtr& snapshot) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < snapshot->files().size(); ++i) {
    const fetch::Target file = target_of(snapshot, i);
    const Digest content = file.key();
    const bool stays = state_->with(
        [&](State& state) { return stays_for_others(state, content, snapshot->key()); });
    if (stays) continue;
    bytes += parts_.stock.remove(file);
    // What somebody fetches has stayed, and is nobody's until it is counted.
    if (parts_.stock.presence(file) != Stock::Presence::kNone) miscounted_ = true;
  }
  return bytes;
}

std::optional<Guard> Governor::guard_of(State& state, const Holding& holding) const {
  const Digest& key = holding.snapshot;
  if (parts_.catalog.pinned(key)) return Guard::kPinned;
  if (parts_.catalog.leases().holds(key)) return Guard::kLeased;
  if (parts_.open.contains(key)) return Guard::kOpen;
  const auto window = options_.rollback_window.count();
  if (window > 0 && parts_.catalog.rolled_back_to(key, now() - window)) return Guard::kConfirmed;
  const SnapshotPtr snapshot = parts_.catalog.snapshot(key);
  return snapshot ? use_of_files(state, snapshot) : std::nullopt;
}

/// Of its weights: a config is shared by many. Also for a moment only: what somebody has open gives
/// nothing back, and more would have to go.
std::optional<Guard> Governor::use_of_files(State& state, const SnapshotPtr& snapshot) const {
  for (std::size_t i = 0; i < snapshot->files().size(); ++i) {
    if (!state.weights.is_use(*snapshot, i)) continue;
    const fetch::Target file = target_of(snapshot, i);
    if (parts_.stock.in_use(file)) return Guard::kOpen;
    if (parts_.stock.presence(file) == Stock::Presence::kFilling) return Guard::kFilling;
    if (parts_.stock.set_aside(file)) return Guard::kSetAside;
  }
  return std::nullopt;
}

void Governor::keep_limits() {
  auto turn = turn_.lock();
  count(*turn);
  if (const auto why = make_room({})) {
    static_cast<void>(make_room({}, budget().capacity + why->short_of));
    state_->with([&](State& state) { state.counts.kept = why->kept; });
  }
}

void Governor::rewrite_log(State& state) {
  UseLog::Memory memory;
  for (const References::Record& record : state.references.records()) {
    memory.references.push_back(record);
  }
  for (const Area area : {Area::kProbation, Area::kResident}) {
    state.holdings.walk(area, [&](const Holding& holding) {
      memory.uses.push_back({holding.snapshot, holding.area, holding.last_use});
      return true;
    });
  }
  state.log.rewrite(memory);
}

}  // namespace weightfs::cache
