// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

/// Names are bytes; messages and JSON are UTF-8. These functions are the border. Pure.
namespace weightfs::snapshot {

/// Well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms, nothing above U+10FFFF).
[[nodiscard]] bool is_utf8(std::string_view bytes) noexcept;

/// For messages: in double quotes, control characters and bytes that are not UTF-8 as \xNN,
/// shortened where it is very long. Always valid UTF-8 on one line.
[[nodiscard]] std::string printable(std::string_view bytes);

/// RFC 4648 section 4, with padding. Decoding takes nothing else: no white space, no stray bits.
[[nodiscard]] std::string to_base64(std::string_view bytes);
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

}  // namespace weightfs::snapshot
