// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "snapshot/mirrored_validator.hpp"

#include <charconv>

namespace weightfs::snapshot {

std::optional<MirroredValidator> MirroredValidator::parse(std::string_view text) {
  MirroredValidator parsed;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, parsed.source);
  if (error != std::errc{} || stop == end || *stop != '|') return std::nullopt;
  parsed.inner.assign(stop + 1, end);
  return parsed;
}

}  // namespace weightfs::snapshot
