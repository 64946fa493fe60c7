// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace weightfs::fetch {

struct LimitUse {
  std::uint64_t rate = 0;             ///< bytes per second; 0: no limit
  std::chrono::nanoseconds waited{};  ///< in which at least one fill waited for it
};

struct FetchCounters {
  std::uint64_t requests = 0;      ///< ranged reads asked of sources
  std::uint64_t source_bytes = 0;  ///< taken from sources
  std::uint64_t retries = 0;
  std::uint64_t waited_bytes = 0;  ///< bytes that readers had to wait for (misses)
  std::uint64_t waited_reads = 0;
  std::uint64_t cloned_bytes = 0;  ///< that came by reflink, without a copy
  std::uint64_t streamed = 0;      ///< fills that went past the disk because of the disk
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;
  std::uint64_t corrupt = 0;
  LimitUse source_limit;
  LimitUse disk_limit;
  LimitUse background_limit;  ///< while others read the store's disk
};

/// FetchCounters while they run. Thread-safe; each counter on its own.
struct FetchTally {
  std::atomic<std::uint64_t> requests{0};
  std::atomic<std::uint64_t> source_bytes{0};
  std::atomic<std::uint64_t> retries{0};
  std::atomic<std::uint64_t> waited_bytes{0};
  std::atomic<std::uint64_t> waited_reads{0};
  std::atomic<std::uint64_t> cloned_bytes{0};
  std::atomic<std::uint64_t> streamed{0};
  std::atomic<std::uint64_t> completed{0};
  std::atomic<std::uint64_t> failed{0};
  std::atomic<std::uint64_t> corrupt{0};

  [[nodiscard]] FetchCounters counters() const {
    return {.requests = requests,
            .source_bytes = source_bytes,
            .retries = retries,
            .waited_bytes = waited_bytes,
            .waited_reads = waited_reads,
            .cloned_bytes = cloned_bytes,
            .streamed = streamed,
            .completed = completed,
            .failed = failed,
            .corrupt = corrupt};
  }
};

}  // namespace weightfs::fetch
