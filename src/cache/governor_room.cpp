// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors

// What a Governor reckons with: the room that there is, and what is missing.

#include "cache/governor.hpp"

#include <algorithm>
#include <cstddef>
#include <unordered_set>
#include <vector>

namespace weightfs::cache {

using snapshot::SnapshotPtr;

policy::Budget Governor::budget(const Volumes& volumes, Capacity capacity) const {
  policy::Budget budget = cache::budget(options_.limits, volumes);
  budget.capacity = capacity.value_or(budget.capacity);
  return budget;
}

policy::Budget Governor::budget(Capacity capacity) const {
  return budget(parts_.stock.volumes(), capacity);
}

/// A file is on one volume: where there is room on all of them together, more may have to go.
policy::Plan Governor::plan_one_volume(const policy::Claim& claim) {
  Volumes volumes = parts_.stock.volumes();
  const auto room = [&] { return headroom(options_.limits, volumes); };
  if (volumes.size() <= 1 || room() >= claim.bytes) return {.fits = true};
  remove_strays();
  volumes = parts_.stock.volumes();
  if (room() >= claim.bytes) return {.fits = true};
  const std::uint64_t most = largest_file(options_.limits, volumes);
  if (claim.bytes > most) return {.short_of = claim.bytes - most};
  return plan(claim, budget(volumes, {}).used + room());
}

/// 0 where it is complete, or on its way: then it has its space.
std::uint64_t Governor::missing_bytes(const fetch::Target& file) const {
  return parts_.stock.presence(file) == Stock::Presence::kNone ? file.file().size : 0;
}

std::uint64_t Governor::missing_bytes(const SnapshotPtr& snapshot) const {
  std::uint64_t bytes = 0;
  std::unordered_set<Digest> seen;
  for (std::size_t i = 0; i < snapshot->files().size(); ++i) {
    const fetch::Target file{.snapshot = snapshot, .file_index = i, .source = nullptr};
    if (seen.insert(file.key()).second) bytes += missing_bytes(file);
  }
  return bytes;
}

bool Governor::any_present(const SnapshotPtr& snapshot) const {
  for (std::size_t i = 0; i < snapshot->files().size(); ++i) {
    const fetch::Target file{.snapshot = snapshot, .file_index = i, .source = nullptr};
    if (parts_.stock.presence(file) != Stock::Presence::kNone) return true;
  }
  return false;
}

}  // namespace weightfs::cache
