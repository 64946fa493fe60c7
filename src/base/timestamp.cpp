// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/timestamp.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace weightfs {

namespace {

using Milliseconds = std::chrono::milliseconds;
using std::chrono::day;
using std::chrono::month;
using std::chrono::sys_days;
using std::chrono::sys_seconds;
using std::chrono::year;
using std::chrono::year_month_day;

/// The whole text as a number.
template <typename Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Takes `digits` digits, and `after` where it is not 0.
std::optional<int> take(std::string_view& text, std::size_t digits, char after) {
  const std::size_t length = digits + (after != 0 ? 1 : 0);
  if (text.size() < length || (after != 0 && text[digits] != after)) return std::nullopt;
  const auto value = number<unsigned>(text.substr(0, digits));
  if (value) text.remove_prefix(length);
  return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

/// A date, and `after` behind it where that is not 0.
std::optional<sys_days> take_date(std::string_view& text, char after) {
  const auto years = take(text, 4, '-');
  const auto months = years ? take(text, 2, '-') : std::nullopt;
  const auto days = months ? take(text, 2, after) : std::nullopt;
  if (!days) return std::nullopt;
  const year_month_day date{year{*years}, month{static_cast<unsigned>(*months)},
                            day{static_cast<unsigned>(*days)}};
  return date.ok() ? std::optional(sys_days{date}) : std::nullopt;
}

/// The zone at the end of a time: Z, +01:00, -0700.
std::optional<std::chrono::minutes> read_zone(std::string_view text, NoZone without) {
  if (text.empty() && without == NoZone::kRefused) return std::nullopt;
  if (text.empty() || text == "Z" || text == "z") return std::chrono::minutes{0};
  const bool west = text.front() == '-';
  if (!west && text.front() != '+') return std::nullopt;
  text.remove_prefix(1);
  const auto hours = take(text, 2, text.size() > 4 ? ':' : '\0');
  const auto minutes = hours ? take(text, 2, '\0') : std::nullopt;
  if (!minutes || !text.empty() || *hours > 23 || *minutes > 59) return std::nullopt;
  return std::chrono::minutes{(west ? -1 : 1) * (*hours * 60 + *minutes)};
}

}  // namespace

std::optional<Milliseconds> read_date_and_time(std::string_view text, NoZone without) {
  constexpr std::size_t kDateLength = 10;
  const bool space = text.size() > kDateLength && text[kDateLength] == ' ';
  const auto date = take_date(text, space ? ' ' : 'T');
  const auto hour = date ? take(text, 2, ':') : std::nullopt;
  const auto minute = hour ? take(text, 2, ':') : std::nullopt;
  const auto second = minute ? take(text, 2, '\0') : std::nullopt;
  // A leap second is the first of the next minute.
  if (!second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;

  std::size_t digits = 0;
  if (text.starts_with('.')) {
    digits = std::min(text.find_first_not_of("0123456789", 1), text.size());
  }
  const double fraction =
      digits > 1 ? number<double>("0" + std::string(text.substr(0, digits))).value_or(0) : 0;
  text.remove_prefix(digits);
  const auto offset = read_zone(text, without);
  if (!offset) return std::nullopt;
  return date->time_since_epoch() + std::chrono::hours{*hour} + std::chrono::minutes{*minute} +
         std::chrono::seconds{*second} + Milliseconds{std::llround(fraction * 1000)} - *offset;
}

std::int64_t parse_timestamp(std::string_view text) {
  std::optional<Milliseconds> time = read_date_and_time(text, NoZone::kRefused);
  if (!time) {
    std::string_view rest = text;
    const auto date = take_date(rest, '\0');
    if (date && rest.empty()) time = date->time_since_epoch();
  }
  // The zone may lead out of the years that can be written.
  constexpr std::int64_t kFirst = -62'167'219'200;  // 0000-01-01T00:00:00Z
  constexpr std::int64_t kLast = 253'402'300'799;   // 9999-12-31T23:59:59Z
  if (time) {
    const std::int64_t seconds = std::chrono::floor<std::chrono::seconds>(*time).count();
    if (seconds >= kFirst && seconds <= kLast) return seconds;
  }
  throw Error(Errc::kInvalid, "a time must be like 2026-03-01T12:00:00Z, or a date, not '" +
                                  std::string(text) + "'");
}

std::string show_timestamp(std::int64_t seconds) {
  const sys_seconds time{std::chrono::seconds{seconds}};
  const auto days = std::chrono::floor<std::chrono::days>(time);
  const year_month_day date{days};
  const std::chrono::hh_mm_ss clock{time - days};
  std::array<char, 64> text{};
  (void)std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02dZ",
                      static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                      static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
                      static_cast<int>(clock.minutes().count()),
                      static_cast<int>(clock.seconds().count()));
  return text.data();
}

}  // namespace weightfs
