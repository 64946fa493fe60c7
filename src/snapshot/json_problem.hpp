// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <string>
#include <string_view>

namespace weightfs::snapshot {

/// What a JSON parser says of a text that may hold secrets: line, column and what is wrong there,
/// without the piece of the text that it repeats. Pure.
[[nodiscard]] inline std::string json_problem(std::string_view what) {
  constexpr std::string_view kPiece = "; last read: '";
  constexpr std::string_view kEnd = "'; expected ";
  const std::size_t piece = what.find(kPiece);
  std::string problem(what.substr(0, piece));
  if (piece == std::string_view::npos) return problem;
  const std::size_t end = what.rfind(kEnd);
  if (end != std::string_view::npos && end > piece) problem += what.substr(end + 1);
  return problem;
}

}  // namespace weightfs::snapshot
