// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "policy/trace_number.hpp"

#include "base/error.hpp"
#include "base/quantity.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

namespace weightfs::policy {

namespace {

using Milliseconds = std::chrono::milliseconds;

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

/// The zone at the end of a time: nothing or Z, +01:00, -0700.
std::optional<std::chrono::minutes> zone(std::string_view text) {
  if (text.empty() || text == "Z" || text == "z") return std::chrono::minutes{0};
  const bool west = text.front() == '-';
  if (!west && text.front() != '+') return std::nullopt;
  text.remove_prefix(1);
  const auto hours = take(text, 2, text.size() > 4 ? ':' : '\0');
  const auto minutes = hours ? take(text, 2, '\0') : std::nullopt;
  if (!minutes || !text.empty()) return std::nullopt;
  return std::chrono::minutes{(west ? -1 : 1) * (*hours * 60 + *minutes)};
}

std::optional<Milliseconds> date_and_time(std::string_view text) {
  using namespace std::chrono;
  const auto year_number = take(text, 4, '-');
  const auto month_number = year_number ? take(text, 2, '-') : std::nullopt;
  const bool space = text.size() > 2 && text[2] == ' ';
  const auto day_number = month_number ? take(text, 2, space ? ' ' : 'T') : std::nullopt;
  const auto hour = day_number ? take(text, 2, ':') : std::nullopt;
  const auto minute = hour ? take(text, 2, ':') : std::nullopt;
  const auto second = minute ? take(text, 2, '\0') : std::nullopt;
  if (!second) return std::nullopt;
  const year_month_day date{year{*year_number}, month{static_cast<unsigned>(*month_number)},
                            day{static_cast<unsigned>(*day_number)}};
  // A leap second is the first of the next minute.
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;

  std::size_t digits = 0;
  if (text.starts_with('.')) {
    digits = std::min(text.find_first_not_of("0123456789", 1), text.size());
  }
  const double fraction =
      digits > 1 ? number<double>("0" + std::string(text.substr(0, digits))).value_or(0) : 0;
  text.remove_prefix(digits);
  const auto offset = zone(text);
  if (!offset) return std::nullopt;
  return sys_days{date}.time_since_epoch() + hours{*hour} + minutes{*minute} + seconds{*second} +
         Milliseconds{std::llround(fraction * 1000)} - *offset;
}

}  // namespace

std::optional<Milliseconds> trace_time(std::string_view text, double unit) {
  const auto value = number<double>(text);
  if (!value) return date_and_time(text);
  constexpr double kFurthest = 9e15;  // far from where arithmetic with times overflows
  const double time = std::round(*value * unit);
  if (!(std::abs(time) < kFurthest)) return std::nullopt;
  return Milliseconds{static_cast<Milliseconds::rep>(time)};
}

std::optional<std::uint64_t> trace_size(std::string_view text, double unit) {
  if (unit == 1) {
    if (const auto whole = number<std::uint64_t>(text)) return whole;
  }
  if (const auto value = number<double>(text)) {
    constexpr double kLargest = 1e18;
    const double bytes = std::round(*value * unit);
    if (!(bytes >= 0 && bytes <= kLargest)) return std::nullopt;
    return static_cast<std::uint64_t>(bytes);
  }
  try {
    return parse_size(text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<double> time_unit(std::string_view name) {
  if (name == "s" || name == "sec") return 1000;
  if (name == "ms") return 1;
  if (name == "us") return 1e-3;
  if (name == "ns") return 1e-6;
  return std::nullopt;
}

std::optional<double> size_unit(std::string_view name) {
  if (name.empty() || number<double>(name.substr(0, 1))) return std::nullopt;
  if (name == "bytes") return 1;
  try {
    return static_cast<double>(parse_size("1" + std::string(name)));
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace weightfs::policy
