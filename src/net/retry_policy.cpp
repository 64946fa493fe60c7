// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "net/retry_policy.hpp"

#include "net/http_date.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace weightfs::net {

namespace {

using std::chrono::milliseconds;

/// Also where a server names a number of seconds that no clock can hold.
constexpr std::chrono::hours kLongest{24 * 365};

milliseconds uniform(milliseconds low, milliseconds high, std::mt19937_64& random) {
  return milliseconds(
      std::uniform_int_distribution<milliseconds::rep>(low.count(), high.count())(random));
}

milliseconds exponential(const RetryOptions& options, unsigned attempt) {
  milliseconds delay = std::min(options.first_delay, options.max_delay);
  for (unsigned i = 1; i < attempt && delay < options.max_delay; ++i) {
    delay = std::min(delay * 2, options.max_delay);
  }
  return delay;
}

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

milliseconds retry_delay(const RetryOptions& options, unsigned attempt,
                         std::optional<milliseconds> retry_after, std::mt19937_64& random) {
  const milliseconds longest = exponential(options, attempt);
  const milliseconds backoff = uniform(longest / 2, longest, random);
  if (!retry_after) return backoff;
  const milliseconds floor = std::clamp(*retry_after, milliseconds(0), options.max_retry_after);
  return std::max(backoff, floor + uniform(milliseconds(0), longest / 2, random));
}

std::optional<milliseconds> parse_retry_after(const std::string& value,
                                              std::chrono::system_clock::time_point now) {
  const std::string_view text = trim(value);
  if (is_number(text)) {
    std::int64_t seconds = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error != std::errc() || seconds > std::chrono::seconds(kLongest).count()) return kLongest;
    return std::chrono::seconds(seconds);
  }
  const auto date = parse_http_date(text);
  if (!date) return std::nullopt;
  const auto wait = std::chrono::ceil<milliseconds>(*date - now);
  return std::clamp(wait, milliseconds(0), milliseconds(kLongest));
}

}  // namespace weightfs::net
