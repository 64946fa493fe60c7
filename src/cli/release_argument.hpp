// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <string>
#include <vector>

namespace weightfs::cli {

/// The reference of the release that `--part PART=SOURCE` and `--overlay PART` describe. UsageError
/// says which of them is wrong.
[[nodiscard]] std::string release_argument(const std::vector<std::string>& parts,
                                           const std::vector<std::string>& overlays);

}  // namespace weightfs::cli
