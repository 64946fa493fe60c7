// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "policy/trace.hpp"

#include <cstdint>
#include <vector>

namespace weightfs::policy {

/// Which node of a fleet a job lands on.
enum class Placement {
  kRecorded,    ///< the one that the trace says
  kRandom,      ///< any, the same in every run
  kRendezvous,  ///< highest random weight for the artifact (Thaler and Ravishankar 1996)
  kHolder,      ///< one that has the artifact, else the one with the most free room
};

/// The node of each reference, for a placement that does not depend on what the nodes hold (not
/// kHolder). Pure.
[[nodiscard]] std::vector<std::uint32_t> place(const Trace& trace, Placement placement,
                                               std::uint32_t nodes);

/// For each reference the place of the next one to the same artifact on the same node,
/// kNoNextReference where there is none. Pure. `nodes_of` says the node of each reference; empty:
/// there is but one.
inline constexpr std::int64_t kNoNextReference = INT64_MAX;
[[nodiscard]] std::vector<std::int64_t> next_references(const Trace& trace,
                                                        const std::vector<std::uint32_t>& nodes_of);

}  // namespace weightfs::policy
