// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/quantity.hpp"

#include "base/error.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <limits>
#include <optional>
#include <utility>

namespace weightfs {

namespace {

using Milliseconds = std::chrono::milliseconds;

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

// Largest first; where two describe a number equally well the earlier one wins.
constexpr std::array<Unit, 11> kSizeUnits{{
    {"PiB", 1ULL << 50},
    {"PB", 1'000'000'000'000'000},
    {"TiB", 1ULL << 40},
    {"TB", 1'000'000'000'000},
    {"GiB", 1ULL << 30},
    {"GB", 1'000'000'000},
    {"MiB", 1ULL << 20},
    {"MB", 1'000'000},
    {"KiB", 1ULL << 10},
    {"kB", 1'000},
    {"B", 1},
}};

constexpr std::array<Unit, 5> kTimeUnits{{
    {"d", 86'400'000},
    {"h", 3'600'000},
    {"m", 60'000},
    {"s", 1'000},
    {"ms", 1},
}};

constexpr std::string_view kUnlimited = "unlimited";

bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

bool same_letters(std::string_view left, std::string_view right) noexcept {
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(left[i])) !=
        std::tolower(static_cast<unsigned char>(right[i]))) {
      return false;
    }
  }
  return true;
}

std::string_view take_digits(std::string_view& rest) noexcept {
  std::size_t count = 0;
  while (count < rest.size() && is_digit(rest[count])) ++count;
  const std::string_view digits = rest.substr(0, count);
  rest.remove_prefix(count);
  return digits;
}

/// digits * factor; nullopt where it does not fit.
std::optional<std::uint64_t> scaled(std::string_view digits, std::uint64_t factor) noexcept {
  std::uint64_t value = 0;
  for (const char c : digits) {
    if (__builtin_mul_overflow(value, std::uint64_t{10}, &value) ||
        __builtin_add_overflow(value, static_cast<std::uint64_t>(c - '0'), &value)) {
      return std::nullopt;
    }
  }
  if (__builtin_mul_overflow(value, factor, &value)) return std::nullopt;
  return value;
}

/// 0.digits * factor; nullopt where it is not a whole number.
std::optional<std::uint64_t> scaled_fraction(std::string_view digits,
                                             std::uint64_t factor) noexcept {
  while (!digits.empty() && digits.back() == '0') digits.remove_suffix(1);
  std::uint64_t divisor = 1;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (__builtin_mul_overflow(divisor, std::uint64_t{10}, &divisor)) return std::nullopt;
  }
  const auto product = scaled(digits, factor);
  if (!product || *product % divisor != 0) return std::nullopt;
  return *product / divisor;
}

[[noreturn]] void bad_size(std::string_view text) {
  throw Error(
      Errc::kInvalid,
      fmt::format("'{}' is not a size; write bytes, or a number and a unit as in 500GB or 10GiB",
                  text));
}

[[noreturn]] void bad_duration(std::string_view text) {
  throw Error(Errc::kInvalid,
              fmt::format("'{}' is not a duration; write it as in 30s, 12h or 2m30s", text));
}

}  // namespace

std::uint64_t parse_size(std::string_view text) {
  std::string_view rest = text;
  const std::string_view whole = take_digits(rest);
  std::string_view fraction;
  if (whole.empty()) bad_size(text);
  if (!rest.empty() && rest.front() == '.') {
    rest.remove_prefix(1);
    fraction = take_digits(rest);
    if (fraction.empty()) bad_size(text);
  }
  if (rest.size() > 1 && rest.front() == ' ') rest.remove_prefix(1);

  for (const Unit& unit : kSizeUnits) {
    if (!same_letters(rest.empty() ? "B" : rest, unit.name)) continue;
    const auto large = scaled(whole, unit.factor);
    const auto small = scaled_fraction(fraction, unit.factor);
    std::uint64_t sum = 0;
    if (!large || !small || __builtin_add_overflow(*large, *small, &sum)) bad_size(text);
    return sum;
  }
  bad_size(text);
}

std::uint64_t parse_rate(std::string_view text) {
  constexpr std::string_view kPerSecond = "/s";
  if (text == kUnlimited) return 0;
  const bool has_suffix = text.ends_with(kPerSecond);
  try {
    return parse_size(text.substr(0, text.size() - (has_suffix ? kPerSecond.size() : 0)));
  } catch (const Error&) {
    throw Error(Errc::kInvalid,
                fmt::format("'{}' is not a rate; write it as in 500MB/s, or unlimited", text));
  }
}

Milliseconds parse_duration(std::string_view text) {
  if (text == "0") return Milliseconds{0};
  std::string_view rest = text;
  std::uint64_t total = 0;
  std::size_t next_unit = 0;
  if (rest.empty()) bad_duration(text);
  while (!rest.empty()) {
    const std::string_view digits = take_digits(rest);
    std::size_t length = 0;
    while (length < rest.size() && !is_digit(rest[length])) ++length;
    const std::string_view name = rest.substr(0, length);
    rest.remove_prefix(length);
    while (next_unit < kTimeUnits.size() && kTimeUnits[next_unit].name != name) ++next_unit;
    if (digits.empty() || next_unit == kTimeUnits.size()) bad_duration(text);
    const auto part = scaled(digits, kTimeUnits[next_unit++].factor);
    if (!part || __builtin_add_overflow(total, *part, &total)) bad_duration(text);
  }
  // A thousand years: far from where arithmetic with deadlines overflows.
  constexpr std::uint64_t kLongest = 1000ULL * 365 * 86'400'000;
  if (total > kLongest) bad_duration(text);
  return Milliseconds{static_cast<Milliseconds::rep>(total)};
}

std::string exact_size(std::uint64_t bytes) {
  const std::string plain = fmt::format("{}", bytes);
  if (bytes == 0) return plain;
  std::string best;
  for (const Unit& unit : kSizeUnits) {
    if (unit.factor == 1 || bytes % unit.factor != 0) continue;
    std::string text = fmt::format("{}{}", bytes / unit.factor, unit.name);
    if (best.empty() || text.size() < best.size()) best = std::move(text);
  }
  return best.empty() || best.size() > plain.size() ? plain : best;
}

std::string exact_rate(std::uint64_t bytes_per_second) {
  if (bytes_per_second == 0) return std::string(kUnlimited);
  const std::string size = exact_size(bytes_per_second);
  return size + (is_digit(size.back()) ? "B/s" : "/s");
}

std::string exact_duration(Milliseconds time) {
  auto rest = static_cast<std::uint64_t>(time.count());
  if (rest == 0) return "0s";
  std::string text;
  for (const Unit& unit : kTimeUnits) {
    if (rest / unit.factor > 0) text += fmt::format("{}{}", rest / unit.factor, unit.name);
    rest %= unit.factor;
  }
  return text;
}

std::string readable_size(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 7> kNames{"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // 999.5 would be printed as 1000.
  while (value >= 999.5 && unit + 1 < kNames.size()) {
    value /= 1000;
    ++unit;
  }
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, decimals, kNames[unit]);
}

std::string readable_duration(std::chrono::seconds time) {
  const auto seconds = time.count() < 0 ? 0 : time.count();
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m {:02}s", seconds / 60, seconds % 60);
  if (seconds < 86'400) return fmt::format("{}h {:02}m", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{}d {:02}h", seconds / 86'400, seconds / 3600 % 24);
}

std::uint64_t Share::of(std::uint64_t whole) const noexcept {
  if (bytes > 0) return bytes;
  return whole / 100 * percent + whole % 100 * percent / 100;
}

Share parse_share(std::string_view text) {
  if (!text.ends_with('%')) return {.bytes = parse_size(text)};
  std::string_view rest = text;
  const auto percent = scaled(take_digits(rest), 1);
  if (rest != "%" || rest.size() == text.size() || !percent || *percent > 100) {
    throw Error(Errc::kInvalid,
                fmt::format("'{}' is neither a size, as \"500GB\", nor a whole number of percent, "
                            "as \"90%\"",
                            text));
  }
  return {.percent = static_cast<unsigned>(*percent)};
}

std::string exact_share(const Share& share) {
  return share.bytes > 0 || share.percent == 0 ? exact_size(share.bytes)
                                               : fmt::format("{}%", share.percent);
}

}  // namespace weightfs
