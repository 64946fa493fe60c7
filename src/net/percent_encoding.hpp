// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weightfs::net {

/// One path segment or query value for a URL (RFC 3986): everything but unreserved characters
/// becomes %XX, '/' included. Takes bytes, not text.
[[nodiscard]] std::string percent_encode(std::string_view bytes);

/// A '/'-separated path: each segment encoded, the separators kept.
[[nodiscard]] std::string percent_encode_path(std::string_view path);

/// The bytes behind the %XX; nullopt for a '%' that two hexadecimal digits do not follow.
[[nodiscard]] std::optional<std::string> percent_decode(std::string_view text);

}  // namespace weightfs::net
