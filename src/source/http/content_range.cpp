// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/http/content_range.hpp"

#include "snapshot/file.hpp"

#include <charconv>

namespace weightfs::source {

std::optional<std::uint64_t> parse_length(std::string_view value) {
  std::uint64_t length = 0;
  const char* const end = value.data() + value.size();
  const auto [stopped, error] = std::from_chars(value.data(), end, length);
  if (error != std::errc() || stopped != end || length > snapshot::kMaxFileSize) {
    return std::nullopt;
  }
  return length;
}

std::optional<ContentRange> parse_content_range(std::string_view value) {
  constexpr std::string_view kUnit = "bytes ";
  const std::size_t slash = value.find('/');
  if (!value.starts_with(kUnit) || slash == std::string_view::npos) return std::nullopt;
  const std::string_view range = value.substr(kUnit.size(), slash - kUnit.size());
  const std::string_view total = value.substr(slash + 1);

  ContentRange parsed;
  if (total != "*") {
    parsed.total = parse_length(total);
    if (!parsed.total) return std::nullopt;
  }
  if (range == "*") return parsed.total ? std::optional(parsed) : std::nullopt;

  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = parse_length(range.substr(0, dash));
  const auto last = parse_length(range.substr(dash + 1));
  if (!first || !last || *first > *last) return std::nullopt;
  if (parsed.total && *last >= *parsed.total) return std::nullopt;
  parsed.range = ByteRange{*first, *last + 1};
  return parsed;
}

}  // namespace weightfs::source
