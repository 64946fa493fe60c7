// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors

// What the books say of parts that wait for a limit.

#include "fetch/fill_ledger.hpp"
#include "store/partial_blob.hpp"

#include <algorithm>

namespace weightfs::fetch {

namespace {

constexpr std::uint64_t kBlock = store::kBlockSize;
/// So many bytes that must wait for their turn are worse than a request of its own for what lies
/// behind them.
constexpr std::uint64_t kWorthAsking = 512 << 10;

}  // namespace

std::optional<Urgency> FillLedger::urgency_of(const Part& part, std::uint64_t position) const {
  if (!wanting()) return std::nullopt;
  if (strict_ && !parked_.empty()) return Urgency::kDemand;
  const ByteRange rest{position, part.range.end};
  std::optional<std::uint64_t> first;
  for (const ByteRange range : demand()) {
    // A reader waits for whole blocks.
    const ByteRange blocks{range.begin / kBlock * kBlock,
                           (range.end + kBlock - 1) / kBlock * kBlock};
    const ByteRange demanded = blocks.intersect(rest);
    if (!demanded.empty()) first = std::min(first.value_or(demanded.begin), demanded.begin);
  }
  if (first && *first - position > kWorthAsking && !one_stream_) return std::nullopt;
  if (first) return Urgency::kDemand;
  const bool reading = want_ == Want::kFile || place_ == Place::kMemory;
  return reading ? Urgency::kFile : Urgency::kBackground;
}

void FillLedger::hold(const Part& part) noexcept {
  if (const auto found = running_.find(part.id); found != running_.end()) found->second.held = true;
}

void FillLedger::let_go(const Part& part, TimePoint now) noexcept {
  if (!running_.contains(part.id)) return;
  excuse_held(now);
  running_.at(part.id).held = false;
}

void FillLedger::excuse_held(TimePoint now) noexcept {
  for (auto& [id, running] : running_) {
    if (running.held) running.last_progress = last_progress_ = held_until_ = now;
  }
}

bool FillLedger::crowded() const {
  if (strict_ || one_stream_ || running_.size() < plan_.connections) return false;
  const std::vector<ByteRange> ranges = demand();
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](ByteRange range) { return planner_.has_missing(range); });
}

}  // namespace weightfs::fetch
