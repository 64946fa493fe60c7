// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/parked_reads.hpp"

#include "store/partial_blob.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace weightfs::fetch {

namespace {

constexpr std::uint64_t kBlock = store::kBlockSize;

bool holds_all(const ParkedRead& read) {
  return std::all_of(read.held.begin(), read.held.end(),
                     [](const BlockBytes& bytes) { return bytes != nullptr; });
}

bool admitted(const ParkedRead& read) noexcept {
  return !read.held.empty();
}

}  // namespace

void ParkedRead::copy_held(std::span<std::byte> out) const {
  std::uint64_t begin = range.begin / kBlock * kBlock;
  for (const BlockBytes& block : held) {
    const ByteRange part = range.intersect({begin, begin + block->size()});
    std::memcpy(out.data() + (part.begin - range.begin), block->data() + (part.begin - begin),
                static_cast<std::size_t>(part.size()));
    begin += kBlock;
  }
}

std::optional<ParkedRead> ParkedReads::remove(ReadId id) {
  const auto found = std::find_if(reads_.begin(), reads_.end(),
                                  [&](const ParkedRead& read) { return read.id == id; });
  if (found == reads_.end()) return std::nullopt;
  std::optional<ParkedRead> read = std::move(*found);
  reads_.erase(found);
  return read;
}

std::vector<ParkedRead> ParkedReads::remove_all() {
  return remove_if([](ParkedRead&) { return true; });
}

std::vector<ParkedRead> ParkedReads::remove_if(const Predicate& ready) {
  std::vector<ParkedRead> removed;
  for (auto it = reads_.begin(); it != reads_.end();) {
    if (!ready(*it)) {
      ++it;
      continue;
    }
    removed.push_back(std::move(*it));
    it = reads_.erase(it);
  }
  return removed;
}

std::vector<ParkedRead> ParkedReads::admit(std::uint64_t budget, const FindBlock& find) {
  std::uint64_t asked = 0;
  for (ParkedRead& read : reads_) {
    asked += read.range.size();
    if (admitted(read)) continue;
    if (asked > budget && asked > read.range.size()) break;
    for (std::uint64_t i = read.range.begin / kBlock; i * kBlock < read.range.end; ++i) {
      read.held.push_back(find(i));
    }
  }
  return remove_if([](ParkedRead& read) { return admitted(read) && holds_all(read); });
}

std::vector<ParkedRead> ParkedReads::attach(std::uint64_t block, const BlockBytes& bytes) {
  return remove_if([&](ParkedRead& read) {
    const std::uint64_t first = read.range.begin / kBlock;
    if (!admitted(read) || block < first || block * kBlock >= read.range.end) return false;
    read.held[static_cast<std::size_t>(block - first)] = bytes;
    return holds_all(read);
  });
}

std::vector<ByteRange> ParkedReads::ranges() const {
  std::vector<ByteRange> ranges;
  ranges.reserve(reads_.size());
  for (const ParkedRead& read : reads_) ranges.push_back(read.range);
  return ranges;
}

std::vector<ByteRange> ParkedReads::admitted_ranges() const {
  std::vector<ByteRange> ranges;
  for (const ParkedRead& read : reads_) {
    if (admitted(read)) ranges.push_back(read.range);
  }
  return ranges;
}

}  // namespace weightfs::fetch
