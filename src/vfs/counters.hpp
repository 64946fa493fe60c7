// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <cstdint>

namespace weightfs::vfs {

/// What consumers did, since the daemon started. A hit is counted when a consumer opens a complete
/// file (its size, once per consumer and file), because the kernel serves the reads and the daemon
/// never sees them; a miss is an open of a file that is not complete. Neither is
/// counted where there is no cache (modes off and shadow).
struct Counters {
  std::uint64_t lookups = 0;
  std::uint64_t opens = 0;
  std::uint64_t reads = 0;  ///< READ requests that reached the daemon
  std::uint64_t read_bytes = 0;
  std::uint64_t hits = 0;
  std::uint64_t hit_bytes = 0;
  std::uint64_t misses = 0;
  std::uint64_t open_files = 0;  ///< now
};

}  // namespace weightfs::vfs
