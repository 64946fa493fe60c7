// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "fetch/fill_ledger.hpp"
#include "store/partial_blob.hpp"

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

namespace weightfs::fetch {

inline constexpr std::uint64_t kMiB = 1 << 20;
inline constexpr std::uint64_t kBlock = store::kBlockSize;
inline constexpr FillLedger::TimePoint kStart = FillLedger::TimePoint() + std::chrono::hours(1);

inline snapshot::File file(std::uint64_t size) {
  snapshot::File made;
  made.path = "model.safetensors";
  made.size = size;
  return made;
}

/// The books of a fill of which nothing is under way yet, and of which a clone is tried first.
inline FillLedger ledger(std::uint64_t size = 100 * kMiB, const FetcherOptions& options = {},
                         std::vector<bool> written = {}) {
  return {file(size),
          options,
          {.place = Place::kDisk, .written = std::move(written), .local = true, .seed = 1}};
}

/// The same of a source from which nothing can be cloned.
inline FillLedger remote_ledger(const FetcherOptions& options = {}) {
  return {file(100 * kMiB), options, {.place = Place::kDisk, .written = {}, .seed = 1}};
}

inline ParkedRead read(ReadId id, ByteRange range) {
  ParkedRead made;
  made.id = id;
  made.range = range;
  return made;
}

/// All of a part comes, and it ends.
inline void deliver(FillLedger& books, const Part& part) {
  (void)books.received(part, part.range, whole_blocks(part.range, 1ULL << 40), nullptr, kStart);
  books.part_ended(part, part.range.end, nullptr, kStart);
}

}  // namespace weightfs::fetch
