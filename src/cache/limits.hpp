// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/quantity.hpp"
#include "policy/room.hpp"
#include "store/store.hpp"

#include <cstdint>

namespace weightfs::cache {

/// How much of its filesystem the store may have. Both hold at all times.
struct Limits {
  Share capacity{.percent = 90};   ///< of the filesystem, or bytes
  Share min_free{.percent = 5};    ///< of the filesystem, or bytes, left free whoever uses the rest
  Share probation{.percent = 20};  ///< of the capacity, or bytes
};

/// What the store may take of its filesystem, whoever uses the rest of it. Pure.
[[nodiscard]] std::uint64_t capacity(const Limits& limits, const store::StoreUsage& usage) noexcept;

/// The budget that follows from the limits and from what the disk says: as if capacity were all
/// that counts, for bytes that are evicted here become free there. Pure.
[[nodiscard]] policy::Budget budget(const Limits& limits, const store::StoreUsage& usage) noexcept;

}  // namespace weightfs::cache
