// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "vfs/complete_nodes.hpp"

#include <algorithm>
#include <utility>

namespace weightfs::vfs {

void CompleteNodes::remember(const Digest& digest, NodeId node) {
  state_.with([&](State& state) {
    if (state.count >= kLimit) return;
    std::vector<NodeId>& nodes = state.nodes[digest];
    if (std::ranges::find(nodes, node) != nodes.end()) return;
    nodes.push_back(node);
    ++state.count;
  });
}

std::vector<NodeId> CompleteNodes::take(const Digest& digest) {
  return state_.with([&](State& state) {
    auto found = state.nodes.extract(digest);
    if (found.empty()) return std::vector<NodeId>();
    state.count -= found.mapped().size();
    return std::move(found.mapped());
  });
}

}  // namespace weightfs::vfs
