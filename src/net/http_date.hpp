// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace weightfs::net {

/// The three forms of RFC 9110, 5.6.7: `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37
/// GMT` and `Sun Nov  6 08:49:37 1994`. nullopt for anything else. Pure; independent of the locale.
[[nodiscard]] std::optional<std::chrono::sys_seconds> parse_http_date(std::string_view text);

}  // namespace weightfs::net
