// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/error.hpp"
#include "base/timestamp.hpp"
#include "control/peer.hpp"
#include "control/residency.hpp"
#include "control/service.hpp"
#include "snapshot/byte_text.hpp"

#include <fmt/format.h>

#include <unistd.h>
#include <algorithm>
#include <unordered_set>
#include <utility>

namespace weightfs::control {

namespace {

constexpr std::int64_t kMostPriority = 1'000'000;
constexpr std::size_t kLongestArtifact = 4096;
constexpr std::size_t kLongestOwner = 1024;

std::int64_t time_of(const char* key, const std::string& text) {
  if (text.empty()) throw Error(Errc::kInvalid, fmt::format("a lease must say its {}", key));
  try {
    return parse_timestamp(text);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", key, error.what()));
  }
}

catalog::LeaseAsker asker_of(std::optional<uid_t> user) {
  using May = catalog::LeaseAsker::May;
  if (!user) return {};
  return {.user = *user,
          .name = user_name(*user),
          .may = *user == 0 || *user == ::geteuid() ? May::kAny : May::kOwn};
}

}  // namespace

/// A NAME, a NAME@REVISION, or the id or key of a snapshot.
snapshot::SnapshotPtr Service::snapshot_named(const std::string& text) const {
  // They stand in JSON on the disk.
  if (text.size() > kLongestArtifact || !snapshot::is_utf8(text)) {
    throw Error(Errc::kInvalid,
                fmt::format("no artifact of a lease: {}", snapshot::printable(text)));
  }
  if (const auto model = parts_.catalog.find(text)) return current(*model);
  if (const auto digest = Digest::parse(text)) {
    if (auto snapshot = parts_.catalog.snapshot_by_id(*digest)) return snapshot;
    if (auto snapshot = parts_.catalog.snapshot(*digest)) return snapshot;
  }
  if (const std::size_t at = text.find('@'); at != std::string::npos) {
    if (auto snapshot = parts_.catalog.revision(text.substr(0, at), text.substr(at + 1))) {
      return snapshot;
    }
  }
  throw Error(Errc::kNotFound, fmt::format("no model, revision or snapshot is known as {}", text));
}

api::Lease Service::put_lease(const std::string& id, const api::LeaseRequest& request,
                              std::optional<uid_t> user) {
  catalog::check_lease_id(id);
  if (request.priority < -kMostPriority || request.priority > kMostPriority) {
    throw Error(Errc::kInvalid, fmt::format("a priority must be from -{0} to {0}", kMostPriority));
  }
  if (!snapshot::is_utf8(request.owner) || request.owner.size() > kLongestOwner) {
    throw Error(
        Errc::kInvalid,
        fmt::format("the owner of a lease must be UTF-8, of {} bytes at most", kLongestOwner));
  }
  require_store("nothing can be leased");
  if (!keeps()) {
    throw Error(Errc::kUnsupported, "nothing can be leased: nothing is kept in this mode");
  }
  catalog::Lease lease{.id = id,
                       .artifacts = {},
                       .not_before = time_of("not_before", request.not_before),
                       .until = time_of("until", request.until),
                       .bandwidth = request.bandwidth,
                       .priority = request.priority,
                       .owner = request.owner};
  if (request.artifacts.size() > catalog::Leases::kMostArtifacts) {
    throw Error(Errc::kInvalid, "a lease of so many artifacts");
  }
  Snapshots snapshots;
  for (const std::string& text : request.artifacts) {
    snapshots.push_back(snapshot_named(text));
    lease.artifacts.push_back({.text = text, .snapshot = snapshots.back()->key()});
  }
  catalog::check_lease(lease, now());
  const catalog::LeaseAsker asker = asker_of(user);
  catalog::Leases& leases = parts_.catalog.leases();
  lease_warmer_.expire();
  // One that cannot fit is not taken either; and for one that is not theirs nothing is evicted.
  reserving_.with([&](Reserving&) {
    if (const auto before = leases.find(id)) check_may_change(*before, asker);
    parts_.cache.reserve(snapshots);
    const bool renewed = leases.put(lease, asker) == catalog::Leases::Put::kRenewed;
    const auto put = leases.find(id);
    if (!put) return;  // removed again, or over
    renewed ? lease_events_.renewed(*put) : lease_events_.taken(*put);
  });
  lease_warmer_.look_again();
  return this->lease(id);
}

void Service::remove_lease(const std::string& id, std::optional<uid_t> user) {
  const catalog::LeaseAsker asker = asker_of(user);
  const auto removed = parts_.catalog.leases().remove(id, asker);
  if (!removed) throw Error(Errc::kNotFound, fmt::format("no lease has the id {}", id));
  lease_events_.released(*removed, asker.name);
  lease_warmer_.look_again();
}

api::Lease Service::lease(const std::string& id) {
  for (api::Lease& lease : leases()) {
    if (lease.id == id) return std::move(lease);
  }
  throw Error(Errc::kNotFound, fmt::format("no lease has the id {}", id));
}

std::vector<api::Lease> Service::leases() {
  std::vector<catalog::Lease> live = parts_.catalog.leases().list();
  std::ranges::sort(live, {}, [](const catalog::Lease& lease) {
    return fetch::Precedence{.due = lease.not_before, .priority = lease.priority};
  });
  const std::optional<double> pace = lease_warmer_.pace();
  std::unordered_set<Digest> counted;
  double before = 0;  // bytes that are missing of it and of what is due before it
  std::vector<api::Lease> all;
  for (const catalog::Lease& lease : live) {
    api::Lease described = describe(lease);
    for (std::size_t i = 0; i < lease.artifacts.size(); ++i) {
      if (!counted.insert(lease.artifacts[i].snapshot).second) continue;
      before += static_cast<double>(described.snapshots[i].missing_bytes);
    }
    const auto left = static_cast<double>(lease.not_before - now());
    described.late = !described.complete && left <= 0;
    const bool too_slow = pace && before > *pace * left;
    const bool fails = std::ranges::any_of(described.snapshots,
                                           [](const auto& one) { return !one.error.empty(); });
    described.at_risk = !described.complete && !described.late && (too_slow || fails);
    all.push_back(std::move(described));
  }
  std::ranges::sort(all, {}, &api::Lease::id);
  return all;
}

/// All but whether it comes in time.
api::Lease Service::describe(const catalog::Lease& lease) const {
  api::Lease described{.id = lease.id,
                       .artifacts = {},
                       .not_before = show_timestamp(lease.not_before),
                       .until = show_timestamp(lease.until),
                       .bandwidth = lease.bandwidth,
                       .priority = lease.priority,
                       .owner = lease.owner,
                       .user = lease.user,
                       .complete = true,
                       .snapshots = {}};
  for (const catalog::Lease::Artifact& artifact : lease.artifacts) {
    described.artifacts.push_back(artifact.text);
    api::LeasedSnapshot& one = described.snapshots.emplace_back(
        api::LeasedSnapshot{.artifact = artifact.text, .key = artifact.snapshot.hex()});
    if (const auto snapshot = parts_.catalog.snapshot(artifact.snapshot)) {
      const Residency resident = residency(parts_.store, parts_.fetcher, snapshot);
      one.revision = snapshot->revision();
      one.bytes = snapshot->bytes();
      one.missing_bytes = one.bytes - std::min(one.bytes, resident.bytes);
      one.unverified_bytes = resident.bytes - std::min(resident.bytes, resident.verified);
      one.complete = resident.complete;
      if (!one.complete) one.error = lease_warmer_.error(artifact.snapshot);
    } else {
      one.error = "the snapshot is not known any more";
    }
    described.bytes += one.bytes;
    described.missing_bytes += one.missing_bytes;
    described.unverified_bytes += one.unverified_bytes;
    described.complete = described.complete && one.complete;
  }
  return described;
}

/// Error(kBusy) where somebody leases one of these.
void Service::refuse_leased(const catalog::Model& model, const Snapshots& snapshots) const {
  for (const catalog::Lease& lease : parts_.catalog.leases().list()) {
    for (const snapshot::SnapshotPtr& snapshot : snapshots) {
      if (std::ranges::find(lease.artifacts, snapshot->key(),
                            &catalog::Lease::Artifact::snapshot) == lease.artifacts.end()) {
        continue;
      }
      throw Error(Errc::kBusy, fmt::format("{} is leased until {}; 'weightfs lease rm {}' first",
                                           model.name, show_timestamp(lease.until), lease.id));
    }
  }
}

/// Snapshots that leases hold, whatever name has them.
Service::Snapshots Service::leased() const {
  Snapshots all;
  for (const catalog::Lease& lease : parts_.catalog.leases().list()) {
    for (const catalog::Lease::Artifact& artifact : lease.artifacts) {
      if (auto snapshot = parts_.catalog.snapshot(artifact.snapshot)) {
        all.push_back(std::move(snapshot));
      }
    }
  }
  return all;
}

}  // namespace weightfs::control
