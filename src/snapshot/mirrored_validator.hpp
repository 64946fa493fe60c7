// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace weightfs::snapshot {

/// The File::validator of what several sources have: which of them listed it, and its own
/// validator there. A value.
struct MirroredValidator {
  std::size_t source = 0;  ///< from 0, in the order in which they were named
  std::string inner;

  /// nullopt for one that no number stands before.
  [[nodiscard]] static std::optional<MirroredValidator> parse(std::string_view text);
  [[nodiscard]] std::string text() const { return std::to_string(source) + "|" + inner; }
};

}  // namespace weightfs::snapshot
