// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/checkpointer.hpp"

#include "base/thread.hpp"
#include "fetch/blob_fill.hpp"

#include <algorithm>
#include <utility>

namespace weightfs::fetch {

Checkpointer::Checkpointer(std::chrono::milliseconds interval)
    : interval_(interval),
      thread_(start_thread("fetch-sync", [this](std::stop_token stop) { run(std::move(stop)); })) {
}

Checkpointer::~Checkpointer() {
  stop();
}

void Checkpointer::dirty(const BlobFillPtr& fill) {
  state_.with([&](State& state) {
    if (!state.stopped) state.dirty.push(fill);
  });
  wake_.notify_one();
}

void Checkpointer::idle(const BlobFillPtr& fill) {
  state_.with([&](State& state) {
    if (!state.stopped) state.idle.push(fill);
  });
  wake_.notify_one();
}

void Checkpointer::stop() {
  FillQueue dropped_dirty;
  FillQueue dropped_idle;
  state_.with([&](State& state) {
    state.stopped = true;
    dropped_dirty = std::exchange(state.dirty, {});
    dropped_idle = std::exchange(state.idle, {});
  });
  thread_ = {};
  while (!dropped_idle.empty()) dropped_idle.pop()->close_if_idle();
}

void Checkpointer::run(std::stop_token stop) {
  using SteadyClock = std::chrono::steady_clock;
  auto due = SteadyClock::time_point::max();  // of the dirty ones; max while there are none
  for (;;) {
    FillQueue dirty;
    FillQueue idle;
    {
      auto state = state_.lock();
      if (!state.wait(wake_, stop, [&] { return !state->dirty.empty() || !state->idle.empty(); })) {
        return;
      }
      if (!state->dirty.empty()) {
        due = std::min(due, SteadyClock::now() + interval_);
        state.wait_until(wake_, stop, due, [&] { return !state->idle.empty(); });
      }
      if (stop.stop_requested()) return;
      idle = std::exchange(state->idle, {});
      if (SteadyClock::now() >= due) {
        dirty = std::exchange(state->dirty, {});
        due = SteadyClock::time_point::max();
      }
    }
    while (!idle.empty()) idle.pop()->close_if_idle();
    while (!dirty.empty()) dirty.pop()->checkpoint();
  }
}

}  // namespace weightfs::fetch
