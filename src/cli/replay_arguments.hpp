// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "policy/replay.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weightfs::cli {

/// Capacities as `replay` takes them: all of them numbers of artifacts, or all sizes.
struct ReplayCapacities {
  policy::Sizes sizes = policy::Sizes::kUnit;
  std::vector<std::uint64_t> amounts;
};

/// "8,12" or "1TB,2TB". UsageError.
[[nodiscard]] ReplayCapacities parse_capacities(std::string_view text);

/// Each text is "lru" or "lru,fifo"; none: all but `never`. Belady's, the bound, is the last one
/// wherever it was not asked for. UsageError.
[[nodiscard]] std::vector<policy::ReplayPolicy> parse_policies(
    const std::vector<std::string>& texts);

/// "20" references, or a duration as "6h". UsageError.
[[nodiscard]] policy::Lookahead parse_lookahead(std::string_view text);

/// Which nodes a replay is about: `placement` and `nodes` (0) may be empty, for what the trace
/// says, else one node. Error(kInvalid) where the two and the trace do not go together.
[[nodiscard]] policy::ReplayOptions fleet_of(const policy::Trace& trace, std::string_view placement,
                                             std::uint32_t nodes);

}  // namespace weightfs::cli
