// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cache/first_times.hpp"
#include "vfs/counters.hpp"

#include <atomic>
#include <cstdint>
#include <string>

namespace weightfs::vfs {

/// Counts what consumers do. A complete file is one hit per consumer and inode, however often it is
/// opened; the memory of who has been counted is bounded and starts over when it is full.
///
/// Thread-safe.
class HitLedger {
 public:
  void lookup() noexcept { ++lookups_; }
  void read(std::uint64_t bytes) noexcept {
    ++reads_;
    read_bytes_ += bytes;
  }
  /// Whether it was counted as a hit.
  bool open_complete(const std::string& consumer, std::uint64_t inode, std::uint64_t size);
  /// Where there is no cache to hit or miss.
  void open_uncached() noexcept { ++opens_; }
  void open_incomplete() noexcept {
    ++opens_;
    ++misses_;
  }
  [[nodiscard]] Counters counters(std::uint64_t open_files) const;

 private:
  std::atomic<std::uint64_t> lookups_ = 0;
  std::atomic<std::uint64_t> opens_ = 0;
  std::atomic<std::uint64_t> reads_ = 0;
  std::atomic<std::uint64_t> read_bytes_ = 0;
  std::atomic<std::uint64_t> hits_ = 0;
  std::atomic<std::uint64_t> hit_bytes_ = 0;
  std::atomic<std::uint64_t> misses_ = 0;
  cache::FirstTimes counted_;
};

}  // namespace weightfs::vfs
