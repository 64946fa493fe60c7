// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/natural_order.hpp"

#include <algorithm>
#include <cstddef>

namespace weightfs::fetch {

namespace {

bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

/// Takes the number at the front off `text`, without its leading zeros.
std::string_view take_number(std::string_view& text) noexcept {
  const auto end =
      static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_digit) - text.begin());
  std::string_view number = text.substr(0, end);
  text.remove_prefix(end);
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  return number;
}

}  // namespace

bool natural_less(std::string_view left, std::string_view right) noexcept {
  std::string_view a = left;
  std::string_view b = right;
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const std::string_view x = take_number(a);
      const std::string_view y = take_number(b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      continue;
    }
    if (a.front() != b.front()) {
      return static_cast<unsigned char>(a.front()) < static_cast<unsigned char>(b.front());
    }
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  if (a.empty() != b.empty()) return a.empty();
  return left < right;
}

}  // namespace weightfs::fetch
