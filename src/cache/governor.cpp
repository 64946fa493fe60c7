// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cache/governor.hpp"

#include "base/error.hpp"
#include "base/quantity.hpp"
#include "cache/shared_content.hpp"
#include "cache/shortage.hpp"
#include "cache/weights.hpp"
#include "fetch/target.hpp"
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

fetch::Target target_of(const SnapshotPtr& snapshot, std::size_t file_index) {
  return {.snapshot = snapshot, .file_index = file_index, .source = nullptr};
}

std::vector<Digest> keys_of(const policy::Holdings& holdings) {
  std::vector<Digest> keys;
  for (const Area area : {Area::kProbation, Area::kResident}) {
    holdings.walk(area, [&](const Holding& holding) {
      keys.push_back(holding.snapshot);
      return true;
    });
  }
  return keys;
}

}  // namespace

/// What is known of the stock, and of who wants what in it.
struct Governor::State {
  State(const GovernorOptions& options, const Log& logger)
      : log(options.use_log, options.writing, logger), tenants(options.tenants) {}

  /// The file is kept from now on, for this snapshot.
  void add(const fetch::Target& file, std::uint64_t bytes) {
    const Digest content = file.key();
    if (shared.contains(content)) {
      shared.set_present(content, true);
      shares_moved = true;
      return;
    }
    const Digest& key = file.snapshot->key();
    own[key] += bytes;
    holdings.set_bytes(key, holdings.find(key)->bytes + bytes);
  }
  void drop(const Digest& snapshot_key) {
    own.erase(snapshot_key);
    shares_moved = true;
    if (!holdings.find(snapshot_key)) return;
    holdings.drop(snapshot_key);
    log.drop(snapshot_key);
  }
  /// Shared bytes count with whoever goes last, which every use may change.
  void settle_shares() {
    if (!std::exchange(shares_moved, false) || shared.empty()) return;
    const auto shares = shared.assign(holdings);
    const auto of = [](const auto& bytes, const Digest& key) {
      const auto found = bytes.find(key);
      return found == bytes.end() ? 0 : found->second;
    };
    for (const Digest& key : keys_of(holdings)) {
      holdings.set_bytes(key, of(own, key) + of(shares, key));
    }
  }

  References references;
  policy::Holdings holdings;
  UseLog log;
  std::unordered_map<Digest, std::uint64_t> own;  ///< bytes by snapshot that no other one has
  SharedContent shared;
  bool shares_moved = false;
  std::vector<Tenant> tenants;
  Weights weights;
  std::uint64_t stray_bytes = 0;  ///< of blobs that no snapshot has, as far as is known
  Digest latest;                  ///< the last one in the order of use
  GovernorStatus counts;
};

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
  claim.bytes = std::max(least, kMoreThanItsPlace);
  if (!make_room(claim, budget().used)) return true;
  claim.bytes = least;
  return !make_room(claim, budget().used);
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
