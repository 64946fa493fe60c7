// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/printable.hpp"

#include "snapshot/byte_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weightfs::cli {

namespace {

constexpr std::size_t kLongestSequence = 4;

/// Bytes of the character at the front that may be shown as it is; 0 where there is none.
std::size_t shown_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x20 || first == 0x7F) return 0;
  if (first < 0x80) return 1;
  for (std::size_t length = 2; length <= std::min(kLongestSequence, text.size()); ++length) {
    if (!snapshot::is_utf8(text.substr(0, length))) continue;
    // U+0080 to U+009F are control characters, too.
    return first == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0 ? 0 : length;
  }
  return 0;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t length = shown_length(text);
    if (length == 0) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
      text.remove_prefix(1);
    } else {
      shown += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return shown;
}

std::size_t width_of(std::string_view text) noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace weightfs::cli
