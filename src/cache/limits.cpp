// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cache/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace weightfs::cache {

namespace {

using store::VolumeState;
using store::VolumeStatus;

/// What the volumes on one filesystem make of it, bytes.
struct Disk {
  std::uint64_t size = 0;
  std::uint64_t free = 0;
  std::uint64_t used = 0;
  bool usable = false;

  /// What may be ours of it, by the capacity alone.
  [[nodiscard]] std::uint64_t share(const Limits& limits) const noexcept {
    return limits.capacity.bytes > 0 ? size : std::min(limits.capacity.of(size), size);
  }
  /// ... and as others and min_free leave it.
  [[nodiscard]] std::uint64_t room(const Limits& limits) const noexcept {
    const std::uint64_t min_free = std::min(limits.min_free.of(size), size);
    const std::uint64_t reach = used + free;  // what could be ours, if others stay as they are
    return std::min(share(limits), reach - std::min(reach, min_free));
  }
};

using Disks = std::map<std::uint64_t, Disk>;

Disks disks_of(std::span<const VolumeStatus> volumes) {
  Disks disks;
  for (const VolumeStatus& volume : volumes) {
    if (volume.state == VolumeState::kNotOpened) continue;
    const store::StoreUsage& usage = volume.usage;
    Disk& disk = disks[volume.filesystem];
    // One whose directory has gone says 0; another on the same filesystem knows.
    disk.size = std::max(disk.size, usage.capacity);
    disk.free = std::max(disk.free, usage.free);
    disk.used += usage.bytes + usage.partial_bytes + usage.evicted_open_bytes;
    disk.usable = disk.usable || volume.state == VolumeState::kUsable;
  }
  return disks;
}

std::uint64_t within(const Limits& limits, std::uint64_t bytes) noexcept {
  return limits.capacity.bytes > 0 ? std::min(limits.capacity.bytes, bytes) : bytes;
}

}  // namespace

std::uint64_t capacity(const Limits& limits, std::span<const VolumeStatus> volumes) {
  std::uint64_t share = 0;
  for (const auto& [number, disk] : disks_of(volumes)) {
    share += disk.usable ? disk.share(limits) : 0;
  }
  return within(limits, share);
}

policy::Budget budget(const Limits& limits, std::span<const VolumeStatus> volumes) {
  policy::Budget sum;
  for (const auto& [number, disk] : disks_of(volumes)) {
    sum.capacity += disk.usable ? disk.room(limits) : disk.used;
    sum.used += disk.used;
  }
  const std::uint64_t share = capacity(limits, volumes);
  sum.capacity = within(limits, sum.capacity);
  sum.probation = std::min(limits.probation.of(share), share);
  return sum;
}

std::uint64_t headroom(const Limits& limits, std::span<const VolumeStatus> volumes) {
  std::uint64_t most = 0;
  for (const auto& [number, disk] : disks_of(volumes)) {
    const std::uint64_t room = disk.usable ? disk.room(limits) : 0;
    most = std::max(most, room - std::min(room, disk.used));
  }
  const policy::Budget all = budget(limits, volumes);
  return std::min(most, all.capacity - std::min(all.capacity, all.used));
}

std::uint64_t largest_file(const Limits& limits, std::span<const VolumeStatus> volumes) {
  std::uint64_t most = 0;
  for (const auto& [number, disk] : disks_of(volumes)) {
    if (disk.usable) most = std::max(most, disk.room(limits));
  }
  return within(limits, most);
}

std::string capacity_excess(const Limits& limits, std::span<const VolumeStatus> volumes) {
  std::uint64_t size = 0;
  for (const auto& [number, disk] : disks_of(volumes)) size += disk.size;
  if (size == 0 || limits.capacity.bytes <= size) return {};
  return fmt::format("the capacity of {} is more than the disk has; it is taken as {}",
                     exact_size(limits.capacity.bytes), readable_size(size));
}

}  // namespace weightfs::cache
