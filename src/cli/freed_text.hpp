// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cli/context.hpp"
#include "weightfs/values.hpp"

#include <string>
#include <string_view>

namespace weightfs::cli {

/// What rm and evict did, to the command's output: as JSON or in a line, by freed_text().
void print_freed(Context& context, const api::Freed& freed, std::string_view verb,
                 std::string_view participle);

/// "org/m: evicted, 3 files and 3.00 GB freed; 1 file (20.0 MB) stays, others have it too". Pure.
[[nodiscard]] std::string freed_text(const api::Freed& freed, std::string_view verb,
                                     std::string_view participle);

}  // namespace weightfs::cli
