// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/planner.hpp"

#include "store/partial_blob.hpp"

#include <algorithm>

namespace weightfs::fetch {

namespace {

constexpr std::uint64_t kBlock = store::kBlockSize;
/// Below this a request's round trip costs more than sharing out the tail of a file gains.
constexpr std::size_t kLeastPartBlocks = (1U << 20) / kBlock;

constexpr std::size_t kMostRunBlocks = (1ULL << 40) / kBlock;

std::size_t blocks_in(std::uint64_t bytes) noexcept {
  return static_cast<std::size_t>(bytes / kBlock + (bytes % kBlock != 0 ? 1 : 0));
}

}  // namespace

ByteRange whole_blocks(ByteRange range, std::uint64_t size) noexcept {
  const std::uint64_t begin = (range.begin + kBlock - 1) / kBlock * kBlock;
  const std::uint64_t end = range.end >= size ? size : range.end / kBlock * kBlock;
  return {begin, std::max(begin, end)};
}

Planner::Planner(Options options, const std::vector<bool>& written)
    : size_(options.size),
      part_blocks_(std::max<std::size_t>(1, static_cast<std::size_t>(options.part_size / kBlock))),
      connections_(std::max(1U, options.connections)),
      blocks_(blocks_in(options.size)),
      missing_blocks_(blocks_.size()) {
  for (std::size_t i = 0; i < std::min(written.size(), blocks_.size()); ++i) {
    if (written[i]) set_written({i * kBlock, end_of(i + 1)});
  }
}

std::optional<ByteRange> Planner::take_demand(std::span<const ByteRange> demand, ByteRange ahead) {
  for (const ByteRange& range : demand) {
    const Blocks wanted = touched(range);
    const auto first = first_missing(wanted);
    if (!first) continue;
    const bool go_on = ahead.begin <= *first * kBlock && range.end < ahead.end;
    std::size_t last = wanted.last;
    if (go_on) last = std::min(touched(ahead).last, std::max(last, *first + ahead_part_blocks()));
    return take(*first, std::min(last, *first + part_blocks_));
  }
  return std::nullopt;
}

std::optional<ByteRange> Planner::take_ahead(ByteRange ahead) {
  const Blocks wanted = touched(ahead);
  const auto first = first_missing(wanted);
  if (!first) return std::nullopt;
  return take(*first, std::min(wanted.last, *first + ahead_part_blocks()));
}

std::optional<ByteRange> Planner::take_run() {
  const auto first = first_missing({0, blocks_.size()});
  if (!first) return std::nullopt;
  return take(*first, std::min(blocks_.size(), *first + kMostRunBlocks));
}

bool Planner::has_missing(ByteRange range) const {
  return first_missing(touched(range)).has_value();
}

void Planner::set_written(ByteRange range) {
  const Blocks whole = touched(whole_blocks(range, size_));
  for (std::size_t i = whole.first; i < whole.last; ++i) {
    if (blocks_[i] == Block::kWritten) continue;
    if (blocks_[i] == Block::kMissing) --missing_blocks_;
    blocks_.set(i, Block::kWritten);
    begun_.erase(i);
    written_bytes_ += end_of(i + 1) - i * kBlock;
  }
  while (frontier_ < blocks_.size() && blocks_[frontier_] == Block::kWritten) ++frontier_;
}

void Planner::give_back(ByteRange range) {
  const Blocks blocks = touched(range);
  for (std::size_t i = blocks.first; i < blocks.last; ++i) {
    if (blocks_[i] != Block::kInFlight) continue;
    blocks_.set(i, Block::kMissing);
    ++missing_blocks_;
    no_missing_ = std::min(no_missing_, i);
    if (i == blocks.first && range.begin > i * kBlock) begun_[i] = range.begin;
  }
}

void Planner::forget(ByteRange range) {
  const Blocks blocks = touched(range);
  for (std::size_t i = blocks.first; i < blocks.last; ++i) {
    if (blocks_[i] != Block::kWritten) continue;
    blocks_.set(i, Block::kMissing);
    ++missing_blocks_;
    written_bytes_ -= end_of(i + 1) - i * kBlock;
    frontier_ = std::min(frontier_, i);
    no_missing_ = std::min(no_missing_, i);
  }
}

bool Planner::is_written(ByteRange range) const {
  const Blocks blocks = touched(range);
  if (blocks.last <= frontier_) return true;
  for (std::size_t i = blocks.first; i < blocks.last; ++i) {
    if (blocks_[i] != Block::kWritten) return false;
  }
  return true;
}

Planner::Blocks Planner::touched(ByteRange range) const noexcept {
  const std::uint64_t end = std::min(range.end, size_);
  if (range.begin >= end) return {};
  return {static_cast<std::size_t>(range.begin / kBlock), blocks_in(end)};
}

std::uint64_t Planner::end_of(std::size_t blocks) const noexcept {
  return std::min<std::uint64_t>(size_, blocks * kBlock);
}

std::optional<std::size_t> Planner::first_missing(Blocks within) const {
  for (std::size_t i = std::max(within.first, no_missing_); i < within.last; ++i) {
    if (blocks_[i] == Block::kMissing) return i;
  }
  return std::nullopt;
}

std::size_t Planner::ahead_part_blocks() const noexcept {
  const std::size_t share = (missing_blocks_ + connections_ - 1) / connections_;
  return std::clamp(share, std::min(kLeastPartBlocks, part_blocks_), part_blocks_);
}

/// At most [first, last), ended early by the first block that is in flight, written or begun.
ByteRange Planner::take(std::size_t first, std::size_t last) {
  std::uint64_t begin = first * kBlock;
  if (const auto begun = begun_.find(first); begun != begun_.end()) {
    begin = begun->second;
    begun_.erase(begun);
  }
  std::size_t end = first;
  while (end < last && blocks_[end] == Block::kMissing && !begun_.contains(end)) {
    blocks_.set(end++, Block::kInFlight);
  }
  missing_blocks_ -= end - first;
  while (no_missing_ < blocks_.size() && blocks_[no_missing_] != Block::kMissing) ++no_missing_;
  return {begin, end_of(end)};
}

}  // namespace weightfs::fetch
