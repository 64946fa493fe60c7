// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "catalog/leases.hpp"

#include "base/error.hpp"
#include "base/timestamp.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace weightfs::catalog {

namespace {

LeaseMap read_or_set_aside(const std::filesystem::path& file, const Log& log) {
  try {
    return read_leases(file);
  } catch (const Error& error) {
    if (error.code() != Errc::kCorrupt && error.code() != Errc::kInvalid) throw;
    log.error("{} is damaged, and set aside; its leases are over: {}", file.string(), error.what());
    std::error_code ignored;  // else it is tried again at the next start
    std::filesystem::rename(file, file.string() + ".damaged", ignored);
    return {};
  }
}

}  // namespace

void check_lease(const Lease& lease, std::int64_t now) {
  check_lease_id(lease.id);
  if (lease.artifacts.empty() || lease.artifacts.size() > Leases::kMostArtifacts) {
    throw Error(Errc::kInvalid,
                "a lease must be of 1 to " + std::to_string(Leases::kMostArtifacts) + " artifacts");
  }
  if (lease.until <= now) {
    throw Error(Errc::kInvalid,
                "the lease would be over already: until is " + show_timestamp(lease.until));
  }
  if (lease.not_before > lease.until) {
    throw Error(Errc::kInvalid, "the lease would be over, " + show_timestamp(lease.until) +
                                    ", before it begins, " + show_timestamp(lease.not_before));
  }
}

Leases::Leases(std::filesystem::path file, const Clock& clock, Log log)
    : file_(std::move(file)),
      clock_(clock),
      log_(std::move(log)),
      tables_(index(read_or_set_aside(file_, log_))) {
}

std::int64_t Leases::now() const {
  return std::chrono::duration_cast<std::chrono::seconds>(clock_.wall().time_since_epoch()).count();
}

Leases::Tables Leases::index(LeaseMap leases) {
  Tables tables{.leases = std::move(leases), .ends = {}};
  for (const auto& [id, lease] : tables.leases) {
    for (const Lease::Artifact& artifact : lease.artifacts) {
      std::int64_t& end = tables.ends[artifact.snapshot];
      end = std::max(end, lease.until);
    }
  }
  return tables;
}

/// Applies `change` to a copy, which is written before anybody sees it, unless the change says that
/// it made none.
template <class Change>
auto Leases::update(const Change& change) {
  auto writer = writer_.lock();
  LeaseMap leases = tables_.with([](const Tables& tables) { return tables.leases; });
  auto changed = change(leases);
  if (changed == decltype(changed){}) return changed;
  write_leases(file_, leases);
  Tables tables = index(std::move(leases));
  tables_.with([&](Tables& mine) { std::swap(mine, tables); });
  return changed;
}

Leases::Put Leases::put(Lease lease, const LeaseAsker& asker) {
  const std::int64_t now = this->now();
  check_lease(lease, now);
  Put done = Put::kTaken;
  (void)update([&](LeaseMap& leases) {
    // What is over is left for expire(), which says so.
    const auto is_live = [now](const auto& one) { return one.second.until > now; };
    const auto before = leases.find(lease.id);
    const bool renewed = before != leases.end() && is_live(*before);
    if (renewed) check_may_change(before->second, asker);
    if (!renewed && static_cast<std::size_t>(std::ranges::count_if(leases, is_live)) >= kMost) {
      throw Error(Errc::kBusy, "there are " + std::to_string(kMost) + " leases, which is the most");
    }
    const bool has_taker = renewed && before->second.user;
    lease.user = has_taker ? before->second.user : asker.user;
    if (lease.owner.empty()) lease.owner = has_taker ? before->second.owner : asker.name;
    done = renewed ? Put::kRenewed : Put::kTaken;
    leases.insert_or_assign(lease.id, lease);
    return true;
  });
  return done;
}

std::optional<Lease> Leases::remove(const std::string& id, const LeaseAsker& asker) {
  return update([&, now = now()](LeaseMap& leases) -> std::optional<Lease> {
    const auto found = leases.find(id);
    if (found == leases.end() || found->second.until <= now) return std::nullopt;
    check_may_change(found->second, asker);
    std::optional<Lease> removed = std::move(found->second);
    leases.erase(found);
    return removed;
  });
}

std::vector<Lease> Leases::expire() {
  const std::int64_t now = this->now();
  const auto is_over = [now](const auto& one) { return one.second.until <= now; };
  const bool any = std::as_const(tables_).with(
      [&](const Tables& tables) { return std::ranges::any_of(tables.leases, is_over); });
  if (!any) return {};
  const std::vector<Lease> gone = update([&](LeaseMap& leases) {
    std::vector<Lease> over;
    for (const auto& one : leases) {
      if (is_over(one)) over.push_back(one.second);
    }
    std::erase_if(leases, is_over);
    return over;
  });
  for (const Lease& lease : gone) log_.info("the lease {} is over", lease.id);
  return gone;
}

std::optional<Lease> Leases::find(const std::string& id) const {
  return tables_.with([&, now = now()](const Tables& tables) -> std::optional<Lease> {
    const auto found = tables.leases.find(id);
    if (found == tables.leases.end() || found->second.until <= now) return std::nullopt;
    return found->second;
  });
}

std::vector<Lease> Leases::list() const {
  return tables_.with([now = now()](const Tables& tables) {
    std::vector<Lease> live;
    for (const auto& [id, lease] : tables.leases) {
      if (lease.until > now) live.push_back(lease);
    }
    return live;
  });
}

bool Leases::holds(const Digest& snapshot_key) const {
  return tables_.with([&, now = now()](const Tables& tables) {
    const auto end = tables.ends.find(snapshot_key);
    return end != tables.ends.end() && end->second > now;
  });
}

}  // namespace weightfs::catalog
