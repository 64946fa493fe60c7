// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/fill_limits.hpp"

#include "store/partial_blob.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>

namespace weightfs::fetch {

namespace {

constexpr std::size_t kSmallestPiece = 4 << 10;
/// What the background has in any case, bytes per second.
constexpr std::uint64_t kFloor = store::kPartSize;

}  // namespace

FillLimits::FillLimits(const Clock& clock, const FetcherOptions& options)
    : source(clock, options.fill_bandwidth),
      disk(clock, options.write_bandwidth),
      background(clock, 0),
      clock_(clock),
      yields_(options.yield_to_readers),
      anybody_reads_(options.anybody_reads),
      reads_(options.disks),
      yield_(kFloor) {
}

bool FillLimits::limited() const noexcept {
  return source.limited() || disk.limited() || background.limited() || paced_ > 0;
}

std::size_t FillLimits::piece(const RateLimiter& limiter) noexcept {
  const std::uint64_t rate = limiter.rate();
  if (rate == 0) return std::numeric_limits<std::size_t>::max();
  constexpr auto kPerSecond = std::chrono::seconds(1) / TokenBucket::kBurst;
  return std::max(kSmallestPiece, static_cast<std::size_t>(rate / kPerSecond));
}

std::size_t FillLimits::piece() const noexcept {
  return std::min({piece(source), piece(disk), piece(background)});
}

void FillLimits::look_again(const void* owner) {
  for (RateLimiter* const limiter : {&source, &disk, &background}) limiter->look_again(owner);
  for (const auto& pace : paces()) pace->look_again(owner);
}

void FillLimits::make_way(const void* owner) {
  for (RateLimiter* const limiter : {&source, &disk, &background}) limiter->make_way(owner);
  for (const auto& pace : paces()) pace->make_way(owner);
}

std::shared_ptr<RateLimiter> FillLimits::make_pace(std::uint64_t rate) {
  auto pace = std::make_shared<RateLimiter>(clock_, rate);
  paces_.with([&](Paces& paces) {
    paces.push_back(pace);
    paced_ = paces.size();
  });
  return pace;
}

std::vector<std::shared_ptr<RateLimiter>> FillLimits::paces() {
  if (paced_ == 0) return {};
  std::vector<std::shared_ptr<RateLimiter>> used;
  paces_.with([&](Paces& paces) {
    for (const auto& pace : paces) {
      if (auto one = pace.lock()) used.push_back(std::move(one));
    }
    std::erase_if(paces, [](const auto& pace) { return pace.expired(); });
    paced_ = paces.size();
  });
  return used;
}

void FillLimits::watch_readers(std::uint64_t received) {
  if (!yields_) return;
  const Clock::TimePoint now = clock_.now();
  if (now < next_look_.load() || looking_.exchange(true)) return;
  next_look_ = now + ReaderYield::kInterval;
  if (const auto read = reads_.bytes(); read && yield_.due(now)) {
    const bool opened = !anybody_reads_ || anybody_reads_();
    yield_.sample(now, {.disk = *read, .own = own_reads, .received = received, .opened = opened});
    if (yield_.rate() != background.rate()) background.set_rate(yield_.rate());
  }
  looking_ = false;
}

}  // namespace weightfs::fetch
