// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <span>
#include <string_view>

namespace weightfs::cli {

/// The candidate that `word` was most likely meant to be: the smallest number of letters inserted,
/// deleted, replaced or swapped with their neighbour; the first of equals. Empty where even that
/// one differs in more than half of the letters. Pure.
[[nodiscard]] std::string_view nearest(std::string_view word,
                                       std::span<const std::string_view> candidates);

}  // namespace weightfs::cli
