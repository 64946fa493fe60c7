// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "fetch/room.hpp"
#include "net/retry_policy.hpp"
#include "store/partial_blob.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace weightfs::fetch {

enum class Verify { kStream, kStrict };
/// Whether bytes may go to the store at all (mode `prod`) or stream through memory (`off`,
/// `shadow`).
enum class Keep { kStore, kMemoryOnly };

struct FetcherOptions {
  unsigned connections = 64;  ///< ranged requests at once, in all
  unsigned connections_per_blob = 16;
  std::uint64_t part_size = store::kPartSize;  ///< largest ranged request, bytes
  /// A part of which no byte came for this long is given up, and asked for again.
  std::chrono::milliseconds stall_timeout{30'000};
  /// A wait ends after this long without a byte; where the fill got no connection at all, after
  /// twice as long.
  std::chrono::milliseconds deadline{120'000};
  /// Under kStrict a file is held until it is verified, which takes the store: without its disk,
  /// and under kMemoryOnly, reads fail rather than give out what nobody verified.
  Verify verify = Verify::kStream;
  Keep keep = Keep::kStore;
  Room* room = nullptr;  ///< who has the say over the disk; nullptr: it is all ours
  unsigned hash_threads = 2;
  std::uint64_t fill_bandwidth = 0;   ///< taken from sources, bytes per second; 0: no limit
  std::uint64_t write_bandwidth = 0;  ///< written to the store likewise
  /// What nobody waits for is slowed down while others read the store's disk.
  bool yield_to_readers = true;
  std::vector<std::filesystem::path> disks;  ///< the store's directories
  /// Whether anybody has a file open, be it complete or not. Called now and then from any thread,
  /// as long as fills run. Empty: nobody knows.
  std::function<bool()> anybody_reads;
  std::uint64_t stream_memory = 128ULL << 20;  ///< for all fills that go past the disk, bytes
  std::chrono::milliseconds checkpoint_interval{1'000};
  net::RetryOptions retry;
  /// A file of which this much was asked for is fetched to its end. Above what a header can look
  /// like: 8 MiB, through mmap and a read-ahead of 4 MiB.
  std::uint64_t file_ahead_after = 12ULL << 20;
  /// ... and this much of a weights file, or a quarter of it, gets the rest of the snapshot.
  std::uint64_t snapshot_ahead_after = 64ULL << 20;
};

}  // namespace weightfs::fetch
