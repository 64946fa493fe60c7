// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cli/command_page.hpp"

#include <span>
#include <string>

namespace weightfs::cli {

/// The manual page weightfs(1), in roff, from the pages of the program (first) and its commands.
/// Says what --help says, and the files and variables besides. Pure.
[[nodiscard]] std::string man_page(std::span<const CommandPage> pages);

}  // namespace weightfs::cli
