// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/quantity.hpp"
#include "policy/room.hpp"
#include "store/store_usage.hpp"
#include "store/volume_status.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace weightfs::cache {

/// How much of its filesystems the store may have. Both hold at all times.
struct Limits {
  Share capacity{.percent = 90};   ///< of each filesystem, or bytes in all
  Share min_free{.percent = 5};    ///< of each filesystem, or bytes on each, left free whoever uses
                                   ///< the rest
  Share probation{.percent = 20};  ///< of the capacity, or bytes
};

/// What the store may take of its filesystems, whoever uses the rest of them. Pure.
[[nodiscard]] std::uint64_t capacity(const Limits& limits,
                                     std::span<const store::VolumeStatus> volumes);

/// The budget that follows from the limits and from what the disks say: as if capacity were all
/// that counts, for bytes that are evicted here become free there; the sum over the filesystems.
/// What is on volumes that are set aside is as much of the capacity as it takes: nothing can be
/// added to it, nor taken away. Pure.
[[nodiscard]] policy::Budget budget(const Limits& limits,
                                    std::span<const store::VolumeStatus> volumes);

/// The largest file that there is room for without evicting anything: a file is on one volume.
/// Pure.
[[nodiscard]] std::uint64_t headroom(const Limits& limits,
                                     std::span<const store::VolumeStatus> volumes);
/// The largest file that any volume could take if nothing else was in the store. Pure.
[[nodiscard]] std::uint64_t largest_file(const Limits& limits,
                                         std::span<const store::VolumeStatus> volumes);

/// What a person is told whose capacity is larger than the disks; empty where it is not. Pure.
[[nodiscard]] std::string capacity_excess(const Limits& limits,
                                          std::span<const store::VolumeStatus> volumes);

}  // namespace weightfs::cache
