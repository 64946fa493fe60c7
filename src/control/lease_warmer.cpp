// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/lease_warmer.hpp"

#include "base/error.hpp"
#include "base/thread.hpp"
#include "control/residency.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace weightfs::control {

namespace {

constexpr std::chrono::seconds kInterval{1};
/// Between attempts to fetch what could not be fetched.
constexpr std::chrono::seconds kRetry{10};
/// Less says little about a pace.
constexpr std::chrono::milliseconds kShortestSample{500};
/// How much the last second says about the next ones.
constexpr double kWeight = 0.3;

Clock::TimePoint now() {
  return std::chrono::steady_clock::now();
}

}  // namespace

/// When each snapshot is due: by the first of its leases.
std::map<Digest, LeaseWarmer::Due> LeaseWarmer::due_snapshots(
    const std::vector<catalog::Lease>& leases) {
  std::map<Digest, Due> due;
  for (const catalog::Lease& lease : leases) {
    const Due one{.precedence = {.due = lease.not_before, .priority = lease.priority},
                  .lease = lease.id,
                  .bandwidth = lease.bandwidth};
    for (const catalog::Lease::Artifact& artifact : lease.artifacts) {
      const auto [entry, added] = due.try_emplace(artifact.snapshot, one);
      if (!added && one.precedence < entry->second.precedence) entry->second = one;
    }
  }
  return due;
}

std::shared_ptr<fetch::RateLimiter> LeaseWarmer::pace_of(const Due& due) {
  if (due.bandwidth == 0) return nullptr;
  Pace& pace = paces_[due.lease];
  if (!pace.limiter || pace.rate != due.bandwidth) {
    pace = {.rate = due.bandwidth, .limiter = parts_.fetcher.make_pace(due.bandwidth)};
  }
  return pace.limiter;
}

void LeaseWarmer::forget_paces(const std::vector<catalog::Lease>& leases) {
  std::erase_if(paces_, [&](const auto& pace) {
    return std::ranges::find(leases, pace.first, &catalog::Lease::id) == leases.end();
  });
}

LeaseWarmer::LeaseWarmer(const Parts& parts)
    : parts_(parts),
      thread_(start_thread("leases", [this](const std::stop_token& stop) { run(stop); })) {
}

void LeaseWarmer::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    try {
      look();
    } catch (const std::exception&) {
      // Out of descriptors, say: the next look may go better.
    }
    auto state = state_.lock();
    state.wait_until(wake_, stop, now() + kInterval, [&] { return state->changed; });
    state->changed = false;
  }
}

void LeaseWarmer::look_again() {
  state_.with([](State& state) { state.changed = true; });
  wake_.notify_all();
}

void LeaseWarmer::expire() noexcept {
  try {
    for (const catalog::Lease& lease : parts_.catalog.leases().expire()) {
      parts_.events.expired(lease);
    }
  } catch (const std::exception&) {
    // They are over all the same, and are taken out of the file when it can be written.
  }
}

LeaseWarmer::Holdings LeaseWarmer::holdings_of(const std::map<Digest, Due>& due) const {
  Holdings holdings;
  for (const auto& [key, ignored] : due) {
    const snapshot::SnapshotPtr snapshot = parts_.catalog.snapshot(key);
    if (!snapshot) continue;
    const Residency resident = residency(parts_.store, parts_.fetcher, snapshot);
    holdings.emplace(
        key, Holding{.snapshot = snapshot,
                     .complete = resident.complete,
                     .missing = snapshot->bytes() - std::min(snapshot->bytes(), resident.bytes)});
  }
  return holdings;
}

void LeaseWarmer::say_how_they_fare(const std::vector<catalog::Lease>& leases,
                                    const Holdings& holdings) {
  const auto wall =
      std::chrono::floor<std::chrono::seconds>(parts_.clock.wall().time_since_epoch());
  for (const catalog::Lease& lease : leases) {
    LeaseEvents::State state{.complete = true};
    for (const catalog::Lease::Artifact& artifact : lease.artifacts) {
      const auto one = holdings.find(artifact.snapshot);
      state.complete = state.complete && one != holdings.end() && one->second.complete;
      if (one != holdings.end()) state.missing += one->second.missing;
    }
    state.late = !state.complete && lease.not_before <= wall.count();
    parts_.events.fares(lease, state);
  }
}

void LeaseWarmer::look() {
  expire();
  const std::vector<catalog::Lease> leases = parts_.catalog.leases().list();
  const auto due = due_snapshots(leases);
  forget_paces(leases);
  std::set<Digest> leased;
  for (const auto& [key, one] : due) leased.insert(key);
  let_go(leased);
  const Holdings holdings = holdings_of(due);
  say_how_they_fare(leases, holdings);
  if (parts_.fetcher.keep() != fetch::Keep::kStore || !parts_.store.writable()) return;
  Sample sample{.time = now(), .snapshots = {}, .missing = 0};
  std::vector<std::pair<Due, snapshot::SnapshotPtr>> missing;
  for (const auto& [key, one] : due) {
    const auto holding = holdings.find(key);
    if (holding == holdings.end() || holding->second.complete) continue;
    sample.snapshots.insert(key);
    sample.missing += holding->second.missing;
    missing.emplace_back(one, holding->second.snapshot);
  }
  std::ranges::sort(missing, std::less<>(), [](const auto& one) { return one.first.precedence; });
  for (const auto& [one, snapshot] : missing) fetch(snapshot, one);
  measure(std::move(sample));
}

void LeaseWarmer::let_go(const std::set<Digest>& leased) {
  std::vector<Digest> over;
  state_.with([&](State& state) {
    std::erase_if(state.watched, [&](const auto& one) {
      if (leased.contains(one.first)) return false;
      over.push_back(one.first);
      return true;
    });
  });
  for (const Digest& key : over) parts_.warmer.excuse(key);
}

void LeaseWarmer::fetch(const snapshot::SnapshotPtr& snapshot, const Due& due) {
  const Digest& key = snapshot->key();
  const auto progress = parts_.warmer.progress(key);
  const bool running = progress && progress->running;
  const bool goes_on = state_.with([&](State& state) {
    const auto watched = state.watched.find(key);
    if (watched == state.watched.end()) return false;
    if (running) return watched->second.due == due;
    return watched->second.retry && now() < *watched->second.retry;
  });
  if (goes_on) return;
  Watched watched{.due = due, .retry = now() + kRetry, .error = {}};
  try {
    parts_.warmer.start(snapshot, parts_.sources.get(snapshot->source()), fetch::Want::kBackground,
                        due.precedence, pace_of(due));
  } catch (const Error& error) {
    watched.error = error.what();
  }
  state_.with([&](State& state) { state.watched.insert_or_assign(key, std::move(watched)); });
}

void LeaseWarmer::measure(Sample sample) {
  if (last_ && sample.time - last_->time < kShortestSample) return;
  const bool comparable =
      last_ && last_->snapshots == sample.snapshots && last_->missing >= sample.missing;
  if (sample.snapshots.empty()) {
    state_.with([](State& state) { state.pace.reset(); });
  } else if (comparable) {
    const std::chrono::duration<double> time = sample.time - last_->time;
    const double rate = static_cast<double>(last_->missing - sample.missing) / time.count();
    state_.with([&](State& state) {
      state.pace = state.pace ? *state.pace * (1 - kWeight) + rate * kWeight : rate;
    });
  }
  last_ = std::move(sample);
}

std::optional<double> LeaseWarmer::pace() const {
  return state_.with([](const State& state) { return state.pace; });
}

std::string LeaseWarmer::error(const Digest& snapshot_key) const {
  const auto progress = parts_.warmer.progress(snapshot_key);
  if (progress && !progress->running && progress->error) return progress->error->what();
  return state_.with([&](const State& state) {
    const auto watched = state.watched.find(snapshot_key);
    return watched == state.watched.end() ? std::string() : watched->second.error;
  });
}

}  // namespace weightfs::control
