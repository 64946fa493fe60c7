// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <cstdint>

namespace weightfs::store {

/// What a volume, or the store in all, holds and could hold. Bytes, but for the counts.
struct StoreUsage {
  std::uint64_t blobs = 0;
  std::uint64_t bytes = 0;               ///< of published blobs
  std::uint64_t partial_bytes = 0;       ///< allocated to fills
  std::uint64_t evicted_open_bytes = 0;  ///< removed, but still held open by somebody
  std::uint64_t capacity = 0;            ///< of the filesystem
  std::uint64_t free = 0;                ///< available to us
  std::uint64_t quarantined = 0;         ///< files in quarantine/
};

}  // namespace weightfs::store
