// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "snapshot/byte_text.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace weightfs::snapshot {

namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::size_t kMaxQuoted = 256;

std::uint8_t byte(char c) noexcept {
  return static_cast<std::uint8_t>(c);
}

bool continues(std::string_view bytes, std::size_t at) noexcept {
  return at < bytes.size() && (byte(bytes[at]) & 0xC0) == 0x80;
}

/// Bytes of the character that begins at `at`; 0 if none does.
std::size_t character_length(std::string_view bytes, std::size_t at) noexcept {
  const std::uint8_t first = byte(bytes[at]);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4 || !continues(bytes, at + 1)) return 0;
  const std::uint8_t second = byte(bytes[at + 1]);
  if (first < 0xE0) return 2;
  if (!continues(bytes, at + 2)) return 0;
  if (first < 0xF0) {
    const bool overlong = first == 0xE0 && second < 0xA0;
    const bool surrogate = first == 0xED && second >= 0xA0;
    return overlong || surrogate ? 0 : 3;
  }
  const bool overlong = first == 0xF0 && second < 0x90;
  const bool too_large = first == 0xF4 && second >= 0x90;
  return overlong || too_large || !continues(bytes, at + 3) ? 0 : 4;
}

}  // namespace

bool is_utf8(std::string_view bytes) noexcept {
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t length = character_length(bytes, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string printable(std::string_view bytes) {
  std::string text = "\"";
  for (std::size_t at = 0; at < bytes.size();) {
    if (at >= kMaxQuoted) {
      text += fmt::format("\"... ({} bytes)", bytes.size());
      return text;
    }
    const std::size_t length = character_length(bytes, at);
    const bool control = length == 1 && (byte(bytes[at]) < 0x20 || byte(bytes[at]) == 0x7F);
    if (length == 0 || control) {
      text += fmt::format("\\x{:02x}", byte(bytes[at++]));
      continue;
    }
    if (bytes[at] == '"' || bytes[at] == '\\') text += '\\';
    text += bytes.substr(at, length);
    at += length;
  }
  return text + '"';
}

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t left = bytes.size() - at;
    std::uint32_t group = std::uint32_t{byte(bytes[at])} << 16;
    if (left > 1) group |= std::uint32_t{byte(bytes[at + 1])} << 8;
    if (left > 2) group |= byte(bytes[at + 2]);
    text += kAlphabet[group >> 18];
    text += kAlphabet[group >> 12 & 63];
    text += left > 1 ? kAlphabet[group >> 6 & 63] : '=';
    text += left > 2 ? kAlphabet[group & 63] : '=';
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  const std::size_t digits = text.size() - padding;

  std::string bytes;
  bytes.reserve(digits * 3 / 4);
  std::uint32_t pending = 0;
  unsigned bits = 0;
  for (const char c : text.substr(0, digits)) {
    const std::size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    pending = pending << 6 | static_cast<std::uint32_t>(value);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes += static_cast<char>(pending >> bits & 0xFF);
    }
  }
  if ((pending & ((1U << bits) - 1)) != 0) return std::nullopt;
  return bytes;
}

}  // namespace weightfs::snapshot
