// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace weightfs::cache {

/// Whether there is a cache. kOff: what is read streams from its source, past the store. kShadow:
/// the same, while it is worked out what the cache would have kept, evicted and saved.
enum class Mode : std::uint8_t { kProd, kOff, kShadow };

/// As people write it.
inline constexpr std::array<std::pair<std::string_view, Mode>, 3> kModeWords{
    {{"prod", Mode::kProd}, {"off", Mode::kOff}, {"shadow", Mode::kShadow}}};

[[nodiscard]] constexpr std::string_view name(Mode mode) noexcept {
  return std::ranges::find(kModeWords, mode, &std::pair<std::string_view, Mode>::second)->first;
}

}  // namespace weightfs::cache
