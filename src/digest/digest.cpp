// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "digest/digest.hpp"

#include "digest/hex.hpp"
#include "digest/sha256.hpp"

#include <span>

namespace weightfs {

namespace {

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::optional<Digest> Digest::parse(std::string_view hex) noexcept {
  if (hex.size() != 2 * kSize) return std::nullopt;
  Bytes bytes{};
  for (std::size_t i = 0; i < kSize; ++i) {
    const int high = hex_value(hex[2 * i]);
    const int low = hex_value(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return Digest(bytes);
}

Digest Digest::of(std::string_view data) {
  Sha256 hasher;
  hasher.update(std::as_bytes(std::span(data)));
  return hasher.digest();
}

std::string Digest::hex() const {
  return weightfs::hex(bytes_);
}

}  // namespace weightfs
