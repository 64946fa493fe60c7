// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cache/limits.hpp"

#include <algorithm>

namespace weightfs::cache {

std::uint64_t capacity(const Limits& limits, const store::StoreUsage& usage) noexcept {
  return std::min(limits.capacity.of(usage.capacity), usage.capacity);
}

policy::Budget budget(const Limits& limits, const store::StoreUsage& usage) noexcept {
  const std::uint64_t used = usage.bytes + usage.partial_bytes + usage.evicted_open_bytes;
  const std::uint64_t capacity = cache::capacity(limits, usage);
  const std::uint64_t min_free = std::min(limits.min_free.of(usage.capacity), usage.capacity);
  const std::uint64_t reach = used + usage.free;  // what could be ours, if others stay as they are
  return {.capacity = std::min(capacity, reach - std::min(reach, min_free)),
          .probation = std::min(limits.probation.of(capacity), capacity),
          .used = used};
}

}  // namespace weightfs::cache
