// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "vfs/load_watch.hpp"

#include "base/error.hpp"
#include "fetch/read_pattern.hpp"

#include <algorithm>

namespace weightfs::vfs {

namespace {

/// Of loads and flips that are remembered; beyond it those that are over are forgotten.
constexpr std::size_t kRemembered = 256;

/// Not one of `name@revision`, `.snapshots/<id>`.
bool shows_name(const std::string& path) {
  return path.find('@') == std::string::npos && !path.starts_with('.');
}

}  // namespace

LoadWatch::LoadWatch(const Clock& clock, Filling filling)
    : clock_(clock), filling_(std::move(filling)) {
}

void LoadWatch::opened(const Place& file, NodeId node, const std::string& consumer) {
  if (!shows_name(file.tree.path) || !fetch::holds_weights(*file.file())) return;
  const View view{file.tree.path, file.tree.key};
  const auto weights =
      static_cast<std::size_t>(std::ranges::count_if(file.snapshot->files(), fetch::holds_weights));
  auto state = state_.lock();
  // A write to the local disk. Else this load could begin before the name moves and go on after.
  state.wait(flipped_, [&] { return !state->flipping.contains(view.first); });
  const Clock::TimePoint now = clock_.now();
  const auto known = state->loads.find({view, consumer});
  const bool loading = known != state->loads.end() && goes_on(*state, known->second);
  if (const auto past = state->past.find(view);
      past != state->past.end() && now - past->second.time < kStale && !loading &&
      past->second.told.emplace(consumer, node.value()).second) {
    throw Error(Errc::kChanged, "the name shows another revision now");
  }
  ++state->open[node.value()];
  if (state->loads.size() >= kRemembered) forget_old(*state);
  Load& load = state->loads[{view, consumer}];
  if (!loading) load.opened.clear();  // the next one
  load.weights = weights;
  load.opened.insert_or_assign(file.index, node);
  load.latest = node;
  load.time = now;
}

void LoadWatch::closed(NodeId node) {
  state_.with([&](State& state) {
    const auto open = state.open.find(node.value());
    if (open == state.open.end()) return;
    for (auto& [who, load] : state.loads) {
      if (load.latest == node && goes_on(state, load)) load.time = clock_.now();
    }
    if (--open->second == 0) state.open.erase(open);
  });
}

LoadWatch::Outcome LoadWatch::flip(const std::string& name, const Digest& from, Loaders loaders,
                                   const std::function<void()>& flip) {
  const View view{name, from};
  Outcome outcome;
  {
    auto state = state_.lock();
    state.wait(flipped_, [&] { return !state->flipping.contains(name); });
    outcome.loader = loader(*state, view).value_or("");
    if (!outcome.loader.empty() && loaders == Loaders::kRespected) return outcome;
    state->flipping.insert(name);
  }
  const auto end = [&] {
    state_.with([&](State& state) {
      state.flipping.erase(name);
      if (!outcome.flipped) return;
      forget_old(state);
      state.past.insert_or_assign(view, Past{.time = clock_.now(), .told = {}});
    });
    flipped_.notify_all();
  };
  try {
    flip();
    outcome.flipped = true;
  } catch (...) {
    end();
    throw;
  }
  end();
  return outcome;
}

bool LoadWatch::goes_on(const State& state, const Load& load) const {
  const bool filling = std::ranges::any_of(load.opened, [&](const auto& entry) {
    return state.open.contains(entry.second.value()) && filling_(entry.second);
  });
  if (filling) return true;
  if (load.opened.size() >= load.weights) return false;
  const bool open = state.open.contains(load.latest.value());
  return clock_.now() - load.time < (open ? kWithFile : kBetweenFiles);
}

std::optional<std::string> LoadWatch::loader(const State& state, const View& view) const {
  for (auto at = state.loads.lower_bound({view, ""});
       at != state.loads.end() && at->first.first == view; ++at) {
    if (goes_on(state, at->second)) return at->first.second;
  }
  return std::nullopt;
}

void LoadWatch::forget_old(State& state) const {
  std::erase_if(state.loads, [&](const auto& entry) { return !goes_on(state, entry.second); });
  std::erase_if(state.past,
                [&](const auto& entry) { return clock_.now() - entry.second.time >= kStale; });
}

}  // namespace weightfs::vfs
