// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "policy/trace_number.hpp"

#include "base/error.hpp"
#include "base/quantity.hpp"
#include "base/timestamp.hpp"

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

}  // namespace

std::optional<Milliseconds> trace_time(std::string_view text, double unit) {
  const auto value = number<double>(text);
  if (!value) return read_date_and_time(text, NoZone::kUtc);
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
