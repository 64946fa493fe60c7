// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/token_bucket.hpp"

#include <algorithm>

namespace weightfs::fetch {

namespace {

constexpr std::uint64_t kNanoseconds = 1'000'000'000;
/// So that the products below fit; far more than any one chunk.
constexpr std::uint64_t kMostBytes = 1ULL << 33;

}  // namespace

void TokenBucket::take(std::uint64_t bytes, TimePoint now) noexcept {
  if (rate_ == 0) return;
  const TimePoint full = now - kBurst;
  if (ready_at_ < full) {
    ready_at_ = full;
    carry_ = 0;
  }
  const std::uint64_t cost = std::min(bytes, kMostBytes) * kNanoseconds + carry_;
  ready_at_ += std::chrono::nanoseconds(cost / rate_);
  carry_ = cost % rate_;
}

void TokenBucket::set_rate(std::uint64_t rate, TimePoint now) noexcept {
  const std::uint64_t before = rate_;
  rate_ = rate;
  carry_ = 0;
  if (before == 0 || rate == 0) {
    ready_at_ = {};
  } else if (ready_at_ > now) {
    const std::chrono::duration<double> owed = ready_at_ - now;
    const std::chrono::duration<double> scaled =
        owed * (static_cast<double>(before) / static_cast<double>(rate));
    ready_at_ = now + std::chrono::duration_cast<std::chrono::nanoseconds>(scaled);
  }
}

}  // namespace weightfs::fetch
