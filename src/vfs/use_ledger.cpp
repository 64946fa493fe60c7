// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "vfs/use_ledger.hpp"

#include <utility>

namespace weightfs::vfs {

bool UseLedger::opened(const snapshot::Snapshot& snapshot, std::size_t file_index,
                       const std::string& consumer) {
  const Clock::TimePoint now = clock_.now();
  return state_.with([&](State& state) {
    if (state.files >= kRemembered) forget(state);
    const bool uses = state.weights.is_use(snapshot, file_index);
    Uses& all = state.uses[snapshot.key()];
    Use& use = all.by_consumer[consumer];
    const bool again = use.files.contains(file_index);
    if (again && all.opens == 0 && now - all.last_close >= kPause) {
      state.files -= use.files.size();
      use = {};
    }
    ++all.opens;
    if (use.files.insert(file_index).second) ++state.files;
    return uses && !std::exchange(use.referred, use.referred || uses);
  });
}

bool UseLedger::missed(const Digest& snapshot_key, std::size_t file_index,
                       const std::string& consumer) {
  return state_.with([&](State& state) {
    const auto all = state.uses.find(snapshot_key);
    if (all == state.uses.end()) return true;
    const auto use = all->second.by_consumer.find(consumer);
    return use == all->second.by_consumer.end() || use->second.missed.insert(file_index).second;
  });
}

void UseLedger::adopted(const Digest& snapshot_key, std::uint32_t opens) {
  state_.with([&](State& state) { state.uses[snapshot_key].opens += opens; });
}

void UseLedger::closed(const Digest& snapshot_key) {
  const Clock::TimePoint now = clock_.now();
  state_.with([&](State& state) {
    const auto found = state.uses.find(snapshot_key);
    if (found == state.uses.end() || found->second.opens == 0) return;
    --found->second.opens;
    found->second.last_close = now;
  });
}

/// What is open stays counted.
void UseLedger::forget(State& state) {
  std::erase_if(state.uses, [](const auto& entry) { return entry.second.opens == 0; });
  for (auto& [key, uses] : state.uses) uses.by_consumer.clear();
  state.weights.forget_if([&](const Digest& key) { return !state.uses.contains(key); });
  state.files = 0;
}

}  // namespace weightfs::vfs
