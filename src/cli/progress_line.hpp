// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cli/streams.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace weightfs::cli {

/// Bytes per second, smoothed over the last seconds. Confined to one thread; time is a parameter.
class RateEstimate {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  void update(TimePoint now, std::uint64_t bytes);
  /// nullopt until there is something to go by.
  [[nodiscard]] std::optional<double> rate() const noexcept { return rate_; }

 private:
  std::optional<TimePoint> last_time_;
  std::uint64_t last_bytes_ = 0;
  std::optional<double> rate_;
};

struct ProgressView {
  std::string title;
  std::uint64_t done = 0;
  std::uint64_t total = 0;  ///< 0: not known
  std::optional<double> rate;
};

/// "org/m  [=====>    ]  1.20 GB of 3.40 GB   35%  812 MB/s  3s left", within `columns`. Pure.
[[nodiscard]] std::string progress_text(const ProgressView& view, unsigned columns);

/// One line on standard error that is drawn over and over; nothing where that is no terminal.
/// Confined to one thread. The destructor leaves the cursor at the beginning of an empty line.
class ProgressLine {
 public:
  explicit ProgressLine(Streams& streams) : streams_(streams) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();

  void update(RateEstimate::TimePoint now, const std::string& title, std::uint64_t done,
              std::uint64_t total);

 private:
  Streams& streams_;
  RateEstimate rate_;
  bool drawn_ = false;
};

}  // namespace weightfs::cli
