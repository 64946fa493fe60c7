// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/hf/signed_url.hpp"

#include <charconv>
#include <cstdint>

namespace weightfs::source {

namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

std::optional<std::string_view> value_of(std::string_view query, std::string_view name) {
  for (std::size_t begin = 0; begin < query.size();) {
    const std::size_t end = std::min(query.find('&', begin), query.size());
    const std::string_view pair = query.substr(begin, end - begin);
    if (pair.starts_with(name) && pair.substr(name.size()).starts_with('=')) {
      return pair.substr(name.size() + 1);
    }
    begin = end + 1;
  }
  return std::nullopt;
}

std::optional<std::int64_t> number(std::optional<std::string_view> text) {
  std::int64_t value = 0;
  if (!text) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  constexpr std::int64_t kMost = 1'000'000'000'000;  // in seconds, beyond all calendars
  if (error != std::errc{} || end != text->data() + text->size()) return std::nullopt;
  if (value < 0 || value > kMost) return std::nullopt;
  return value;
}

/// 20260830T101112Z
std::optional<sys_seconds> amazon_date(std::string_view text) {
  if (text.size() != 16 || text[8] != 'T' || text[15] != 'Z') return std::nullopt;
  const auto part = [&](std::size_t at, std::size_t size) { return number(text.substr(at, size)); };
  const auto year = part(0, 4), month = part(4, 2), day = part(6, 2);
  const auto hour = part(9, 2), minute = part(11, 2), second = part(13, 2);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date) + std::chrono::hours(*hour) + std::chrono::minutes(*minute) +
         seconds(*second);
}

}  // namespace

std::optional<seconds> lifetime(std::string_view query, sys_seconds date) {
  const auto signed_at = value_of(query, "X-Amz-Date");
  const auto expires_in = number(value_of(query, "X-Amz-Expires"));
  if (signed_at && expires_in) {
    const auto begin = amazon_date(*signed_at);
    if (begin) return *begin + seconds(*expires_in) - date;
  }
  if (const auto expires = number(value_of(query, "Expires"))) {
    return sys_seconds(seconds(*expires)) - date;
  }
  return std::nullopt;
}

}  // namespace weightfs::source
