// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "digest/digest.hpp"

#include <cstdint>
#include <unordered_map>

namespace weightfs::cache {

/// Of which snapshots files are open, whoever serves them. Thread-safe.
class OpenSnapshots {
 public:
  /// closed() must follow as often, some day.
  void opened(const Digest& snapshot_key, std::uint64_t times = 1) {
    counts_.with([&](auto& counts) { counts[snapshot_key] += times; });
  }
  void closed(const Digest& snapshot_key) {
    counts_.with([&](auto& counts) {
      const auto found = counts.find(snapshot_key);
      if (found != counts.end() && --found->second == 0) counts.erase(found);
    });
  }
  [[nodiscard]] bool contains(const Digest& snapshot_key) const {
    return counts_.with([&](const auto& counts) { return counts.contains(snapshot_key); });
  }

 private:
  Synchronized<std::unordered_map<Digest, std::uint64_t>> counts_;
};

}  // namespace weightfs::cache
