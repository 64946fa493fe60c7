// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/lease_events.hpp"

#include "base/timestamp.hpp"
#include "snapshot/reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weightfs::control {

namespace {

/// A lease may be of hundreds.
constexpr std::size_t kMostNamed = 8;

std::string artifacts_of(const catalog::Lease& lease) {
  std::string text;
  const std::size_t named = std::min(lease.artifacts.size(), kMostNamed);
  for (std::size_t i = 0; i < named; ++i) {
    text += (i == 0 ? "" : ", ") + lease.artifacts[i].text;
  }
  const std::size_t more = lease.artifacts.size() - named;
  return more == 0 ? text : fmt::format("{} and {} more", text, more);
}

std::string terms_of(const catalog::Lease& lease) {
  return fmt::format("{}, from {} until {}{}{}", artifacts_of(lease),
                     show_timestamp(lease.not_before), show_timestamp(lease.until),
                     lease.owner.empty() ? "" : ", for ", lease.owner);
}

}  // namespace

LeaseEvents::LeaseEvents(const catalog::Catalog& catalog, telemetry::Events events)
    : catalog_(catalog), events_(events) {
  for (const catalog::Lease& lease : catalog_.leases().list()) expect(lease);
}

void LeaseEvents::expect(const catalog::Lease& lease) {
  told_.with([&](auto& told) { told.insert_or_assign(lease.id, Told{.lease = lease}); });
}

void LeaseEvents::forget(const std::string& id) {
  told_.with([&](auto& told) { told.erase(id); });
}

std::uint64_t LeaseEvents::bytes_of(const catalog::Lease& lease) const {
  std::uint64_t bytes = 0;
  for (const catalog::Lease::Artifact& artifact : lease.artifacts) {
    const snapshot::SnapshotPtr snapshot = catalog_.snapshot(artifact.snapshot);
    if (snapshot) bytes += snapshot->bytes();
  }
  return bytes;
}

void LeaseEvents::tell(const char* action, const catalog::Lease& lease, std::uint64_t bytes,
                       const std::string& reason) const {
  telemetry::Event event{.kind = telemetry::EventKind::kLease,
                         .action = action,
                         .lease = lease.id,
                         .bytes = bytes,
                         .reason = reason};
  // Of several there is no one name; the reason has them.
  if (lease.artifacts.size() == 1) {
    const catalog::Lease::Artifact& artifact = lease.artifacts.front();
    event.name = artifact.text;
    event.snapshot = artifact.snapshot.short_hex();
    if (const auto snapshot = catalog_.snapshot(artifact.snapshot)) {
      event.source = snapshot::shown_source(snapshot->source());
    }
  }
  events_.put(std::move(event));
}

void LeaseEvents::taken(const catalog::Lease& lease) {
  tell("taken", lease, bytes_of(lease), terms_of(lease));
  expect(lease);
}

void LeaseEvents::renewed(const catalog::Lease& lease) {
  tell("renewed", lease, bytes_of(lease), terms_of(lease));
  expect(lease);
}

void LeaseEvents::released(const catalog::Lease& lease, const std::string& by) {
  forget(lease.id);
  tell("released", lease, bytes_of(lease), by.empty() ? "asked for" : "asked for by " + by);
}

void LeaseEvents::expired(const catalog::Lease& lease) {
  forget(lease.id);
  tell("expired", lease, bytes_of(lease), "until " + show_timestamp(lease.until));
}

void LeaseEvents::fares(const catalog::Lease& lease, const State& state) {
  Told news;
  const bool known = told_.with([&](auto& all) {
    const auto found = all.find(lease.id);
    if (found == all.end() || found->second.lease != lease) return false;
    Told& told = found->second;
    news.complete = state.complete && !told.complete;
    news.late = state.late && !told.late;
    told.complete = state.complete;
    told.late = told.late || state.late;
    return true;
  });
  if (!known) return;
  if (news.complete) tell("complete", lease, bytes_of(lease), terms_of(lease));
  if (news.late) tell("late", lease, state.missing, terms_of(lease));
}

}  // namespace weightfs::control
