// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "digest/digest.hpp"

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weightfs::control {

/// Bytes per second of things that count up, from samples. Confined to whoever holds it.
class RateTable {
 public:
  using Counts = std::vector<std::pair<Digest, std::uint64_t>>;

  /// One sample of everything that is counted now; what is not in it is forgotten.
  void update(Clock::TimePoint now, const Counts& counts);
  /// Between the last two samples; 0 where there was only one.
  [[nodiscard]] std::uint64_t rate(const Digest& key) const;

 private:
  struct Entry {
    Clock::TimePoint time;
    std::uint64_t count = 0;
    std::uint64_t rate = 0;
  };
  std::unordered_map<Digest, Entry> entries_;
};

}  // namespace weightfs::control
