// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "policy/replay_node.hpp"

#include <cstdint>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weightfs::policy {

/// A node that knows the whole trace and keeps what is needed soonest (Belady 1966); what would be
/// needed last of all is streamed past. Where all artifacts are of one size no policy has more
/// hits; with sizes it is a good one but not a bound, for finding the best one is NP-hard (Chrobak
/// et al. 2012).
///
/// Has nothing in common with the policies that it bounds. Evicts in O(log n). Confined to one
/// thread; `next`, from next_references(), must outlive it.
class ClairvoyantNode final : public ReplayNode {
 public:
  ClairvoyantNode(std::uint64_t capacity, const std::vector<std::int64_t>& next)
      : free_(capacity), next_(next) {}

  Outcome refer(const ReplayUse& use) override;
  [[nodiscard]] bool holds(std::uint32_t artifact) const override {
    return held_.contains(artifact);
  }
  [[nodiscard]] std::uint64_t free() const override { return free_; }

 private:
  struct Held {
    std::int64_t next = 0;
    std::uint64_t bytes = 0;
  };

  /// Whether there is room now, made of what is needed later than `next`.
  bool make_room_for(std::uint64_t bytes, std::int64_t next);

  std::uint64_t free_;
  const std::vector<std::int64_t>& next_;
  std::unordered_map<std::uint32_t, Held> held_;
  std::set<std::pair<std::int64_t, std::uint32_t>> order_;  ///< next use and artifact
};

}  // namespace weightfs::policy
