// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "vfs/dentries.hpp"

namespace weightfs::vfs {

void Dentries::remember(const Digest& content_key, NodeId parent, const std::string& name) {
  state_.with([&](State& state) {
    if (state.count >= kLimit) return;
    if (state.names[content_key].emplace(parent.value(), name).second) ++state.count;
  });
}

void Dentries::invalidate(const Digest& content_key) {
  const std::set<Name> names = state_.with([&](State& state) {
    auto node = state.names.extract(content_key);
    if (node.empty()) return std::set<Name>();
    state.count -= node.mapped().size();
    return std::move(node.mapped());
  });
  for (const auto& [parent, name] : names) invalidator_.entry(NodeId(parent), name);
}

}  // namespace weightfs::vfs
