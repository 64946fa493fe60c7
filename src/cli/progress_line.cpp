// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/progress_line.hpp"

#include "base/quantity.hpp"
#include "cli/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace weightfs::cli {

namespace {

/// How fast the past is forgotten.
constexpr std::chrono::duration<double> kMemory{3.0};
constexpr std::size_t kShortestBar = 10;
constexpr std::size_t kLongestBar = 40;
constexpr const char* kClearLine = "\r\033[K";

std::string bar(double part, std::size_t length) {
  const auto filled = static_cast<std::size_t>(part * static_cast<double>(length));
  std::string text(filled, '=');
  if (filled < length) text += '>';
  text.resize(length, ' ');
  return "[" + text + "]";
}

}  // namespace

void RateEstimate::update(TimePoint now, std::uint64_t bytes) {
  if (last_time_ && now > *last_time_) {
    const std::chrono::duration<double> passed = now - *last_time_;
    const double moved = bytes > last_bytes_ ? static_cast<double>(bytes - last_bytes_) : 0;
    const double current = moved / passed.count();
    const double weight = 1 - std::exp(-passed / kMemory);
    rate_ = rate_ ? *rate_ + weight * (current - *rate_) : current;
  }
  if (!last_time_ || now > *last_time_) {
    last_time_ = now;
    last_bytes_ = bytes;
  }
}

std::string progress_text(const ProgressView& view, unsigned columns) {
  const std::string title = printable(view.title);
  std::string facts;
  if (view.total == 0) {
    facts = view.done == 0 ? "" : readable_size(view.done);
  } else {
    const double part =
        std::min(1.0, static_cast<double>(view.done) / static_cast<double>(view.total));
    facts = fmt::format("{} of {}  {:3.0f}%", readable_size(view.done), readable_size(view.total),
                        std::floor(part * 100));
  }
  if (view.rate)
    facts += fmt::format("  {}/s", readable_size(static_cast<std::uint64_t>(*view.rate)));
  if (view.rate && *view.rate >= 1 && view.total > view.done) {
    const double left = static_cast<double>(view.total - view.done) / *view.rate;
    constexpr double kNoIdea = 30 * 86'400;
    if (left < kNoIdea) {
      facts += fmt::format("  {} left", readable_duration(std::chrono::seconds(std::lround(left))));
    }
  }

  const std::size_t used = width_of(title) + 2 + width_of(facts) + 4;
  std::string text = title;
  if (view.total > 0 && used + kShortestBar < columns) {
    const double part =
        std::min(1.0, static_cast<double>(view.done) / static_cast<double>(view.total));
    text += "  " + bar(part, std::min(kLongestBar, columns - used - 1));
  }
  if (!facts.empty()) text += "  " + facts;
  // A line that wraps cannot be drawn over. Cutting bytes is safe only in ASCII, so cut whole
  // parts.
  if (width_of(text) >= columns) text = facts;
  return width_of(text) >= columns ? "" : text;
}

void ProgressLine::update(RateEstimate::TimePoint now, const std::string& title, std::uint64_t done,
                          std::uint64_t total) {
  rate_.update(now, done);
  if (!streams_.err_is_terminal) return;
  streams_.err << kClearLine
               << progress_text(
                      {.title = title, .done = done, .total = total, .rate = rate_.rate()},
                      streams_.columns)
               << std::flush;
  drawn_ = true;
}

ProgressLine::~ProgressLine() {
  if (drawn_) streams_.err << kClearLine << std::flush;
}

}  // namespace weightfs::cli
