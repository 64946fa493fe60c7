// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>

namespace weightfs {

/// A half-open range of bytes [begin, end) of one file.
struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  [[nodiscard]] constexpr std::uint64_t size() const noexcept { return end - begin; }
  [[nodiscard]] constexpr bool empty() const noexcept { return begin >= end; }
  [[nodiscard]] constexpr bool contains(ByteRange other) const noexcept {
    return begin <= other.begin && other.end <= end;
  }
  [[nodiscard]] constexpr ByteRange intersect(ByteRange other) const noexcept {
    return {std::max(begin, other.begin), std::min(end, other.end)};
  }
  auto operator<=>(const ByteRange&) const = default;
};

}  // namespace weightfs
