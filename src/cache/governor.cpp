// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cache/governor.hpp"

#include "base/error.hpp"
#include "base/quantity.hpp"
#include "fetch/read_pattern.hpp"
#include "fetch/target.hpp"
#include "snapshot/reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
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

fetch::Target target_of(const SnapshotPtr& snapshot, std::size_t file_index) {
  return {.snapshot = snapshot, .file_index = file_index, .source = nullptr};
}

/// 0 where it is complete, or on its way: then it has its space.
std::uint64_t missing_bytes(const store::Store& store, const fetch::Target& target) {
  const snapshot::File& file = target.file();
  const bool complete = file.sha256 && store.contains(*file.sha256, file.size);
  const bool there = complete || store.partial_use(target.key()) != store::PartialUse::kNone;
  return there ? 0 : file.size;
}

std::uint64_t missing_bytes(const store::Store& store, const SnapshotPtr& snapshot) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < snapshot->files().size(); ++i) {
    bytes += missing_bytes(store, target_of(snapshot, i));
  }
  return bytes;
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

/// Configs and tokenizers are read by whoever looks at a model; weights by whoever uses it.
bool is_use(const snapshot::Snapshot& snapshot, std::size_t file_index) {
  const auto& files = snapshot.files();
  return fetch::holds_weights(files[file_index]) ||
         std::ranges::none_of(files, fetch::holds_weights);
}

std::string describe(const policy::Plan& plan) {
  std::string text = fmt::format("{} too little", readable_size(plan.short_of));
  for (const auto& [guard, bytes] : plan.kept) {
    text += fmt::format(", {} {}", readable_size(bytes), policy::name(guard));
  }
  return text;
}

}  // namespace

struct Governor::State {
  State(const std::filesystem::path& use_log, const Log& logger) : log(use_log, logger) {}

  References references;
  policy::Holdings holdings;
  UseLog log;
  std::unordered_map<Digest, std::uint64_t> open;  ///< opens by snapshot
  std::uint64_t stray_bytes = 0;  ///< of blobs that no snapshot has, as far as is known
  Digest latest;                  ///< the last one in the order of use
  GovernorStatus counts;
};

Governor::Governor(Parts parts, GovernorOptions options, Log log)
    : parts_(parts),
      evictor_(parts.store, parts.catalog, parts.observer),
      options_(std::move(options)),
      log_(std::move(log)) {
  State state(options_.use_log, log_);
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

/// For good, not on probation.
bool Governor::admitted(const State& state, const Digest& snapshot_key) const {
  return options_.admission == Admission::kAlways || state.references.proven(snapshot_key) ||
         parts_.catalog.pinned(snapshot_key);
}

Area Governor::area_of(const State& state, const Digest& snapshot_key) const {
  return admitted(state, snapshot_key) ? Area::kResident : Area::kProbation;
}

/// Of what has bytes in the store, though nobody is known to have used it: a part was looked at, as
/// when it was added. Where nothing at all is known, because the log was lost, all stays.
Area Governor::unused_area(const State& state, const Digest& snapshot_key) const {
  return state.log.begun() ? Area::kResident : area_of(state, snapshot_key);
}

/// The order is written down where it changes: one consumer that opens file after file is one line.
void Governor::note_use(State& state, const Digest& snapshot_key, Area area) {
  const Holding* before = state.holdings.find(snapshot_key);
  const bool changes = !before || before->area < area || state.latest != snapshot_key;
  const std::int64_t now =
      std::chrono::duration_cast<std::chrono::seconds>(parts_.clock.wall().time_since_epoch())
          .count();
  state.holdings.use(snapshot_key, area, now);
  state.latest = snapshot_key;
  if (!changes) return;
  state.log.use({.snapshot = snapshot_key, .area = area, .time = now});
  if (state.log.wants_rewrite()) rewrite_log(state);
}

void Governor::opened(const SnapshotPtr& snapshot, std::size_t file_index,
                      const std::string& consumer) {
  const Digest& key = snapshot->key();
  const bool uses = is_use(*snapshot, file_index);
  const snapshot::File& file = snapshot->files()[file_index];
  const bool complete = uses && file.sha256 && parts_.store.contains(*file.sha256, file.size);
  state_->with([&](State& state) {
    ++state.open[key];
    if (!uses) return;
    if (options_.admission != Admission::kNever) refer(state, key, consumer);
    // Also where all that it has is shared with others, and was fetched for them.
    if (complete || state.holdings.find(key)) note_use(state, key, area_of(state, key));
  });
}

void Governor::refer(State& state, const Digest& snapshot_key, const std::string& consumer) {
  switch (state.references.refer(snapshot_key, consumer)) {
    case References::Seen::kFirst:
    case References::Seen::kSecond:
      state.log.reference(state.references.record(snapshot_key));
      break;
    case References::Seen::kAgain:
    case References::Seen::kProven:
      break;
  }
}

void Governor::adopted(const Digest& snapshot_key, std::uint32_t opens) {
  state_->with([&](State& state) { state.open[snapshot_key] += opens; });
}

void Governor::closed(const Digest& snapshot_key) {
  state_->with([&](State& state) {
    const auto found = state.open.find(snapshot_key);
    if (found != state.open.end() && --found->second == 0) state.open.erase(found);
  });
}

void Governor::admit(const SnapshotPtr& snapshot) {
  take_stock();
  const Digest& key = snapshot->key();
  const auto turn = turn_.lock();
  const std::uint64_t missing = missing_bytes(parts_.store, snapshot);
  const policy::Plan fits = plan({.snapshot = key, .area = Area::kResident, .bytes = missing});
  if (missing > 0 && !fits.fits) {
    throw Error(Errc::kNoSpace,
                fmt::format("no space for {} of {}: the store may take {}, which is {}",
                            readable_size(missing), snapshot::shown_source(snapshot->source()),
                            readable_size(budget().capacity), describe(fits)));
  }
  state_->with([&](State& state) {
    state.references.prove(key);
    state.log.reference(state.references.record(key));
    note_use(state, key, Area::kResident);
  });
}

bool Governor::claim(const fetch::Target& target, const std::function<void()>& take) {
  take_stock();
  const Digest& key = target.snapshot->key();
  const auto turn = turn_.lock();
  policy::Claim file{.snapshot = key, .bytes = missing_bytes(parts_.store, target)};
  bool begins = false;
  bool keeps = true;
  state_->with([&](const State& state) {
    file.area = area_of(state, key);
    begins = !state.holdings.find(key);
    keeps = options_.admission != Admission::kNever || admitted(state, key);
  });
  if (!keeps) return false;
  if (begins) {
    // Half a model helps nobody: the whole has to fit, before the first of it is kept.
    policy::Claim whole = file;
    whole.bytes = missing_bytes(parts_.store, target.snapshot);
    const policy::Plan fits = plan(whole);
    if (!fits.fits) return refuse(target, fits);
  }
  if (const auto why = make_room(file)) return refuse(target, *why);
  take_or_evict(file, take);
  state_->with([&](State& state) {
    note_use(state, key, file.area);
    const Holding* holding = state.holdings.find(key);
    state.holdings.set_bytes(key, holding->bytes + file.bytes);
  });
  return true;
}

bool Governor::refuse(const fetch::Target& target, const policy::Plan& plan) {
  log_.info("{} of {} is streamed past the disk: {}", target.file().path,
            snapshot::shown_source(target.snapshot->source()), describe(plan));
  state_->with([&](State& state) {
    ++state.counts.refused;
    state.counts.kept = plan.kept;
  });
  return false;
}

policy::Budget Governor::budget(Capacity capacity) const {
  policy::Budget budget = cache::budget(options_.limits, parts_.store.volumes());
  budget.capacity = capacity.value_or(budget.capacity);
  return budget;
}

policy::Plan Governor::plan(const policy::Claim& claim, Capacity capacity) const {
  policy::Budget budget = this->budget(capacity);
  return state_->with([&](const State& state) {
    budget.used -= std::min(budget.used, state.stray_bytes);
    return policy::make_room(state.holdings, budget, claim,
                             [&](const Holding& holding) { return guard_of(state, holding); });
  });
}

std::optional<policy::Plan> Governor::make_room(const policy::Claim& claim, Capacity capacity) {
  const policy::Budget now = budget(capacity);
  if (now.used + claim.bytes > now.capacity) remove_strays();
  for (;;) {
    policy::Plan next = plan(claim, capacity);
    if (!next.fits) return next;
    if (next.victims.empty()) return std::nullopt;
    for (const Digest& victim : next.victims) take_out(victim);
    // Again: what a victim shared with others has stayed, so it may take more than was planned.
  }
}

/// A disk may be full although its numbers do not say so: quotas, metadata, others who are faster.
void Governor::take_or_evict(const policy::Claim& claim, const std::function<void()>& take) {
  try {
    return take();
  } catch (const Error& error) {
    if (error.code() != Errc::kNoSpace || make_room(claim, budget().used)) throw;
    log_.warning("{}; trying again after eviction", error.what());
  }
  take();
}

void Governor::take_out(const Digest& snapshot_key) {
  if (const SnapshotPtr snapshot = parts_.catalog.snapshot(snapshot_key)) {
    const Evicted gone = evict_shared(snapshot, Evictor::Do::kEvict);
    log_.info("evicted {}, revision {}: {}", snapshot::shown_source(snapshot->source()),
              snapshot->revision(), readable_size(gone.bytes));
    state_->with([&](State& state) {
      ++state.counts.evictions;
      state.counts.evicted_bytes += gone.bytes;
    });
  }
  drop(snapshot_key);
}

std::optional<Guard> Governor::guard_of(const State& state, const Holding& holding) const {
  const Digest& key = holding.snapshot;
  if (parts_.catalog.pinned(key)) return Guard::kPinned;
  if (state.open.contains(key)) return Guard::kOpen;
  const SnapshotPtr snapshot = parts_.catalog.snapshot(key);
  return snapshot ? use_of_files(snapshot) : std::nullopt;
}

/// Of its weights: a config is shared by many. Also for a moment only: what somebody has open gives
/// nothing back, and more would have to go.
std::optional<Guard> Governor::use_of_files(const SnapshotPtr& snapshot) const {
  for (std::size_t i = 0; i < snapshot->files().size(); ++i) {
    if (!is_use(*snapshot, i)) continue;
    const fetch::Target target = target_of(snapshot, i);
    const auto& digest = target.file().sha256;
    if (digest && parts_.store.in_use(*digest)) return Guard::kOpen;
    if (parts_.store.partial_use(target.key()) == store::PartialUse::kFilling) {
      return Guard::kFilling;
    }
  }
  return std::nullopt;
}

Evicted Governor::evict_shared(const SnapshotPtr& snapshot, Evictor::Do what) {
  return evictor_.evict(
      snapshot,
      [&](const Digest& other) {
        return state_->with(
            [&](const State& state) { return state.holdings.find(other) != nullptr; });
      },
      what);
}

Evicted Governor::evict(const SnapshotPtr& snapshot, Evictor::Do what) {
  take_stock();
  const auto turn = turn_.lock();
  const Evicted gone = evict_shared(snapshot, what);
  if (what == Evictor::Do::kEvict) drop(snapshot->key());
  return gone;
}

void Governor::drop(const Digest& snapshot_key) {
  state_->with([&](State& state) {
    if (!state.holdings.find(snapshot_key)) return;
    state.holdings.drop(snapshot_key);
    state.log.drop(snapshot_key);
  });
}

/// What is on the disk already: of the snapshots that the log does not know, too.
void Governor::take_stock() {
  auto turn = turn_.lock();
  if (std::exchange(turn->stock_taken, true)) return;
  std::unordered_set<Digest> known;
  std::unordered_map<Digest, std::uint64_t> blobs;
  for (const SnapshotPtr& snapshot : parts_.catalog.snapshots()) {
    const Digest& key = snapshot->key();
    known.insert(key);
    const std::uint64_t bytes = snapshot->bytes() - missing_bytes(parts_.store, snapshot);
    state_->with([&](State& state) {
      if (bytes == 0) return state.holdings.drop(key);
      if (!state.holdings.find(key)) state.holdings.use(key, unused_area(state, key), 0);
      state.holdings.set_bytes(key, bytes);
    });
    for (const snapshot::File& file : snapshot->files()) {
      if (file.sha256 && parts_.store.contains(*file.sha256)) blobs[*file.sha256] = file.size;
    }
  }
  std::uint64_t known_bytes = 0;
  for (const auto& [digest, size] : blobs) known_bytes += size;
  const std::uint64_t all_bytes = parts_.store.usage().bytes;
  state_->with([&](State& state) {
    for (const Digest& key : keys_of(state.holdings)) {
      if (!known.contains(key)) state.holdings.drop(key);
    }
    state.stray_bytes = all_bytes - std::min(all_bytes, known_bytes);
  });
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
  std::uint64_t bytes = 0;
  for (const Digest& digest : parts_.store.list()) {
    if (!known.contains(digest)) bytes += parts_.store.remove(digest);
  }
  if (bytes > 0) log_.info("evicted files that no model has: {}", readable_size(bytes));
  state_->with([&](State& state) { state.counts.evicted_bytes += bytes; });
}

void Governor::keep_limits() {
  take_stock();
  const auto turn = turn_.lock();
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

GovernorStatus Governor::status() {
  take_stock();
  const policy::Budget now = budget();
  return state_->with([&](const State& state) {
    GovernorStatus status = state.counts;
    status.budget = now;
    status.probation_bytes = state.holdings.bytes(Area::kProbation);
    status.resident_bytes = state.holdings.bytes(Area::kResident);
    return status;
  });
}

}  // namespace weightfs::cache
