// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "net/percent_encoding.hpp"

namespace weightfs::net {

namespace {

/// Not std::isalnum, which asks the locale.
bool is_unreserved(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

std::string encode(std::string_view bytes, std::string_view also_kept) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string text;
  text.reserve(bytes.size() + 16);
  for (const char c : bytes) {
    if (is_unreserved(c) || also_kept.find(c) != std::string_view::npos) {
      text += c;
    } else {
      const auto value = static_cast<unsigned char>(c);
      text += '%';
      text += kHex[value >> 4];
      text += kHex[value & 15];
    }
  }
  return text;
}

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string percent_encode(std::string_view bytes) {
  return encode(bytes, "");
}

std::string percent_encode_path(std::string_view path) {
  return encode(path, "/");
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      bytes += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_value(text[i + 1]);
    const int low = hex_value(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high << 4 | low);
    i += 2;
  }
  return bytes;
}

}  // namespace weightfs::net
