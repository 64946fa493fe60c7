// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace weightfs {

/// A sha256, as a value. Written as 64 lower-case hexadecimal digits everywhere a person sees it.
class Digest {
 public:
  static constexpr std::size_t kSize = 32;
  using Bytes = std::array<std::uint8_t, kSize>;

  Digest() noexcept = default;
  explicit Digest(const Bytes& bytes) noexcept : bytes_(bytes) {}

  /// Exactly 64 hexadecimal digits of either case; nothing else is a digest.
  [[nodiscard]] static std::optional<Digest> parse(std::string_view hex) noexcept;
  /// The digest of these bytes.
  [[nodiscard]] static Digest of(std::string_view data);

  [[nodiscard]] const Bytes& bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::string hex() const;
  /// The first 12 digits: enough for a person, never for a lookup.
  [[nodiscard]] std::string short_hex() const { return hex().substr(0, 12); }

  auto operator<=>(const Digest&) const noexcept = default;

 private:
  Bytes bytes_{};
};

}  // namespace weightfs

template <>
struct std::hash<weightfs::Digest> {
  std::size_t operator()(const weightfs::Digest& digest) const noexcept {
    std::size_t value = 0;
    for (std::size_t i = 0; i < sizeof value; ++i) value = value << 8 | digest.bytes()[i];
    return value;
  }
};
