// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cache/first_times.hpp"
#include "cache/governor.hpp"
#include "cache/shadow_stock.hpp"
#include "telemetry/events.hpp"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace weightfs::cache {

/// What consumers would have found, were there a cache. Counted as the mount counts hits and misses
/// of the one that there is: a hit once per consumer and file.
struct ShadowCounts {
  std::uint64_t hits = 0;
  std::uint64_t hit_bytes = 0;  ///< that the sources would not have been asked for
  std::uint64_t misses = 0;

  /// Of the opens, from 0 to 1.
  [[nodiscard]] double hit_rate() const noexcept {
    const std::uint64_t opens = hits + misses;
    return opens == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(opens);
  }
};

/// The cache that is not there: the governor that prod has, over what it would have kept. It begins
/// with what the store has and what is known of uses, and forgets all that it sees when it goes.
///
/// Thread-safe. What is given must outlive it.
class Shadow final : private telemetry::EventSink {
 public:
  struct Parts {
    const catalog::Catalog& catalog;
    const OpenSnapshots& open;
    const Clock& clock;
    telemetry::Events events = {};  ///< is told each decision as one that would have been taken
  };
  Shadow(Parts parts, const std::vector<std::filesystem::path>& store_directories,
         GovernorOptions options, const Log& log);

  void opened(const snapshot::SnapshotPtr& snapshot, std::size_t file_index,
              const std::string& consumer);
  /// It is fetched, past the disk.
  void fetched(const fetch::Target& target);

  [[nodiscard]] Governor& governor() noexcept { return governor_; }
  [[nodiscard]] ShadowCounts counts() const;

 private:
  void put(telemetry::Event event) noexcept override;

  const telemetry::Events events_;
  ShadowStock stock_;
  Governor governor_;
  FirstTimes counted_;
  std::atomic<std::uint64_t> hits_ = 0;
  std::atomic<std::uint64_t> hit_bytes_ = 0;
  std::atomic<std::uint64_t> misses_ = 0;
};

}  // namespace weightfs::cache
