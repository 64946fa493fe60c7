// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/fill_registry.hpp"

#include "base/error.hpp"
#include "fetch/blob_fill.hpp"

#include <utility>

namespace weightfs::fetch {

FillPtr FillRegistry::join_or_make(const store::PartialKey& key,
                                   const std::function<Made()>& make) {
  BlobFillPtr over;  // was running, cannot be joined any more, and is about to go
  for (;;) {
    BlobFillPtr running;
    {
      auto state = state_.lock();
      state.wait(changed_, [&] {
        const auto found = state->fills.find(key);
        return state->closed || found == state->fills.end() ||
               (found->second && found->second != over);
      });
      if (state->closed) throw Error(Errc::kCancelled, "weightfs is stopping");
      const auto [slot, added] = state->fills.try_emplace(key);
      if (added) break;
      running = slot->second;
    }
    if (FillPtr joined = running->join()) return joined;
    over = running;
  }
  Made made;
  FillPtr joined;
  try {
    made = make();
    if (made.running) joined = made.running->join();
  } catch (...) {
    publish(key, nullptr);
    throw;
  }
  publish(key, made.running);
  if (!made.running) return made.complete;
  made.running->start();
  return joined;
}

void FillRegistry::without_fill(const store::PartialKey& key, const std::function<void()>& action) {
  const bool free = state_.with(
      [&](State& state) { return !state.closed && state.fills.try_emplace(key).second; });
  if (!free) return;
  try {
    action();
  } catch (...) {
    publish(key, nullptr);
    throw;
  }
  publish(key, nullptr);
}

/// Ends the making of a fill: it can be joined, or (null) there is none.
void FillRegistry::publish(const store::PartialKey& key, const BlobFillPtr& fill) {
  const bool closed = state_.with([&](State& state) {
    if (fill && !state.closed) {
      state.fills[key] = fill;
    } else {
      state.fills.erase(key);
    }
    return state.closed;
  });
  changed_.notify_all();
  if (fill && closed) fill->shut_down();
}

void FillRegistry::release(const BlobFill& fill) {
  BlobFillPtr released;
  state_.with([&](State& state) {
    const auto found = state.fills.find(fill.key());
    if (found == state.fills.end() || found->second.get() != &fill) return;
    released = std::move(found->second);
    state.fills.erase(found);
  });
  changed_.notify_all();
}

BlobFillPtr FillRegistry::find(const store::PartialKey& key) const {
  return state_.with([&](const State& state) -> BlobFillPtr {
    const auto found = state.fills.find(key);
    return found == state.fills.end() ? nullptr : found->second;
  });
}

std::vector<BlobFillPtr> FillRegistry::fills() const {
  return state_.with([](const State& state) {
    std::vector<BlobFillPtr> fills;
    for (const auto& [key, fill] : state.fills) {
      if (fill) fills.push_back(fill);
    }
    return fills;
  });
}

std::vector<BlobFillPtr> FillRegistry::close() {
  state_.with([](State& state) { state.closed = true; });
  changed_.notify_all();
  return fills();
}

}  // namespace weightfs::fetch
