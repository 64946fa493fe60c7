// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/rate_table.hpp"

#include <chrono>

namespace weightfs::control {

void RateTable::update(Clock::TimePoint now, const Counts& counts) {
  std::unordered_map<Digest, Entry> next;
  for (const auto& [key, count] : counts) {
    Entry entry{.time = now, .count = count};
    const auto last = entries_.find(key);
    if (last != entries_.end() && now > last->second.time && count >= last->second.count) {
      const std::chrono::duration<double> passed = now - last->second.time;
      entry.rate = static_cast<std::uint64_t>(static_cast<double>(count - last->second.count) /
                                              passed.count());
    }
    next.insert_or_assign(key, entry);
  }
  entries_.swap(next);
}

std::uint64_t RateTable::rate(const Digest& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? 0 : found->second.rate;
}

}  // namespace weightfs::control
