// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/byte_range.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace weightfs::source {

/// The value of a Content-Range header (RFC 9110, 14.4).
struct ContentRange {
  std::optional<ByteRange> range;      ///< nullopt for "bytes */total", the answer to a bad range
  std::optional<std::uint64_t> total;  ///< nullopt for "*"
};

/// nullopt for what is not exactly that: other units, signs, ranges that are empty or leave the
/// total.
[[nodiscard]] std::optional<ContentRange> parse_content_range(std::string_view value);

/// A Content-Length: digits only, below 2^63.
[[nodiscard]] std::optional<std::uint64_t> parse_length(std::string_view value);

}  // namespace weightfs::source
