// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/reader_yield.hpp"

#include <algorithm>
#include <utility>

namespace weightfs::fetch {

namespace {

/// What a counter has grown by; some are counted a little late, and seem to shrink.
std::uint64_t growth(std::uint64_t before, std::uint64_t now) noexcept {
  return now > before ? now - before : 0;
}

}  // namespace

void ReaderYield::sample(TimePoint now, const Counts& counts) noexcept {
  const std::chrono::duration<double> passed = now - std::exchange(last_, now);
  const Counts before = std::exchange(before_, counts);
  if (passed <= passed.zero()) return;
  const std::uint64_t slow = std::max(floor_, speed_ / kShare);
  if (passed >= kStale) {
    // Until the next look: what would be written in that time takes the disk longer than that.
    rate_ = counts.opened ? slow : 0;
    return;
  }
  const auto per_second = [&](std::uint64_t bytes) {
    return static_cast<std::uint64_t>(static_cast<double>(bytes) / passed.count());
  };
  const std::uint64_t disk = growth(before.disk, counts.disk);
  const std::uint64_t own = growth(before.own, counts.own);
  // What we read ourselves is counted when it is done, by the disk when it begins.
  const bool reading = per_second(growth(own, disk)) > kReading + per_second(own) / 4;
  if (reading && counts.opened) last_read_ = now;
  if (!counts.opened) last_read_ = {};
  if (now - last_read_ < kPatience && last_read_ != TimePoint()) {
    rate_ = slow;
    return;
  }
  const std::uint64_t speed = per_second(growth(before.received, counts.received));
  if (rate_ == 0) speed_ = (speed_ * 7 + speed) / 8;  // else this interval was limited
  rate_ = 0;
}

}  // namespace weightfs::fetch
