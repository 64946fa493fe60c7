// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "base/synchronized.hpp"
#include "fetch/disk_reads.hpp"
#include "fetch/fetcher_options.hpp"
#include "fetch/rate_limiter.hpp"
#include "fetch/reader_yield.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace weightfs::fetch {

/// What the bytes of all fills pass, a piece at a time, on their way in: the limit of what is taken
/// from sources, then, unless they are streamed past the disk, that of what is written to the
/// store. They wait with their connection unread, so that TCP tells the server to send less. What
/// is fetched for nobody in particular (Urgency::kBackground) comes through narrower gates first:
/// that of the job that wants it, and one that is nearly closed while others read the store's disk.
///
/// Where a limit is lower than what readers ask for, their reads take as long as that needs: waits
/// for a limit count against no deadline (FillLedger::hold). What is cloned costs nothing.
///
/// Thread-safe. `clock` must outlive it.
class FillLimits {
 public:
  FillLimits(const Clock& clock, const FetcherOptions& options);

  [[nodiscard]] bool limited() const noexcept;
  /// The most bytes to take at once, where there is no other limit: what passes within
  /// TokenBucket::kBurst.
  [[nodiscard]] std::size_t piece() const noexcept;
  [[nodiscard]] static std::size_t piece(const RateLimiter& limiter) noexcept;
  /// As RateLimiter has them.
  void look_again(const void* owner);
  void make_way(const void* owner);

  /// A limit of one job's own. It is gone with its last user.
  [[nodiscard]] std::shared_ptr<RateLimiter> make_pace(std::uint64_t rate);
  /// Looks now and then whether others read the disk, and sets the limit of the background to that.
  /// `received` is what all fills have received so far, bytes.
  void watch_readers(std::uint64_t received);

  RateLimiter source;
  RateLimiter disk;
  RateLimiter background;
  std::atomic<std::uint64_t> own_reads{0};  ///< see OwnReads: by fills, from any disk

 private:
  using Paces = std::vector<std::weak_ptr<RateLimiter>>;
  /// Those that are in use.
  [[nodiscard]] std::vector<std::shared_ptr<RateLimiter>> paces();

  const Clock& clock_;
  const bool yields_;
  const std::function<bool()> anybody_reads_;
  std::atomic<Clock::TimePoint> next_look_{Clock::TimePoint()};
  std::atomic<bool> looking_{false};
  DiskReads reads_;    ///< belongs to who is looking
  ReaderYield yield_;  ///< likewise
  Synchronized<Paces> paces_;
  std::atomic<std::size_t> paced_{0};  ///< how many there may be
};

}  // namespace weightfs::fetch
