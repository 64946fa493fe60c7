// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <string>
#include <string_view>

namespace weightfs::cli {

/// Text that is safe to show: names and messages may come from anywhere, and a terminal obeys what
/// is in them. Control characters and bytes that are not UTF-8 become \xNN. Pure.
[[nodiscard]] std::string printable(std::string_view text);

/// Columns that UTF-8 text takes, counting each character as one. Pure.
[[nodiscard]] std::size_t width_of(std::string_view text) noexcept;

}  // namespace weightfs::cli
