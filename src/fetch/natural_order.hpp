// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <string_view>

namespace weightfs::fetch {

/// Names in the order in which people number them: digit runs compare as numbers, so that shard 10
/// follows shard 9. A strict total order: names that differ only in leading zeros are told apart
/// bytewise. Pure.
[[nodiscard]] bool natural_less(std::string_view left, std::string_view right) noexcept;

}  // namespace weightfs::fetch
