// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/retry_schedule.hpp"

#include <algorithm>

namespace weightfs::fetch {

RetrySchedule::RetrySchedule(const net::RetryOptions& options, std::uint64_t seed)
    : options_(options), random_(seed) {
}

void RetrySchedule::on_bytes(ByteRange received) {
  failures_ = 0;
  next_start_ = {};
  failing_.erase(failing_.lower_bound(received.begin), failing_.lower_bound(received.end));
}

void RetrySchedule::on_failure(ByteRange rest, const TransientError& error, TimePoint now) {
  if (failures_ == 0 || now >= next_start_) ++failures_;  // else begun before the last one failed
  last_failed_ = rest.begin;
  const TimePoint due = now + net::retry_delay(options_, failures_, error.retry_after(), random_);
  next_start_ = std::max(next_start_, due);
  if (error.retry_after()) asked_wait_ = std::max(asked_wait_, due);
  resting_.push_back({rest, due});
  failing_.try_emplace(rest.begin, now);
}

bool RetrySchedule::may_start(TimePoint now) const noexcept {
  return now >= next_start_ && now >= asked_wait_;
}

std::optional<std::uint64_t> RetrySchedule::avoid() const noexcept {
  if (failures_ < 2) return std::nullopt;
  return last_failed_;
}

std::vector<ByteRange> RetrySchedule::take_due(TimePoint now) {
  std::vector<ByteRange> due;
  std::erase_if(resting_, [&](const Rest& rest) {
    if (rest.due > now) return false;
    due.push_back(rest.range);
    return true;
  });
  return due;
}

std::optional<RetrySchedule::TimePoint> RetrySchedule::failing_since() const noexcept {
  const auto oldest =
      std::min_element(failing_.begin(), failing_.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (oldest == failing_.end()) return std::nullopt;
  return oldest->second;
}

void RetrySchedule::forget_failures() noexcept {
  failures_ = 0;
  next_start_ = {};
  failing_.clear();
}

}  // namespace weightfs::fetch
