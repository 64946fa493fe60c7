// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "vfs/hit_ledger.hpp"

namespace weightfs::vfs {

bool HitLedger::open_complete(const std::string& consumer, std::uint64_t inode,
                              std::uint64_t size) {
  ++opens_;
  if (!counted_.first(std::to_string(inode) + " " + consumer)) return false;
  ++hits_;
  hit_bytes_ += size;
  return true;
}

Counters HitLedger::counters(std::uint64_t open_files) const {
  return {.lookups = lookups_,
          .opens = opens_,
          .reads = reads_,
          .read_bytes = read_bytes_,
          .hits = hits_,
          .hit_bytes = hit_bytes_,
          .misses = misses_,
          .open_files = open_files};
}

}  // namespace weightfs::vfs
