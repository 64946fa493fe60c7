// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/fetch_timer.hpp"

#include "base/thread.hpp"
#include "fetch/blob_fill.hpp"

#include <chrono>
#include <utility>

namespace weightfs::fetch {

namespace {

/// How late a retry or a deadline can be. Deadlines are judged by the Clock that the fills have,
/// which need not be the one that this thread sleeps by.
constexpr std::chrono::milliseconds kTick{20};

}  // namespace

FetchTimer::FetchTimer()
    : thread_(start_thread("fetch-timer", [this](std::stop_token stop) { run(std::move(stop)); })) {
}

FetchTimer::~FetchTimer() {
  stop();
}

void FetchTimer::watch(const BlobFillPtr& fill) {
  state_.with([&](State& state) {
    if (!state.stopped) state.watched.push(fill);
  });
  wake_.notify_one();
}

void FetchTimer::stop() {
  FillQueue dropped;
  state_.with([&](State& state) {
    state.stopped = true;
    dropped = std::exchange(state.watched, {});
  });
  thread_ = {};
}

void FetchTimer::run(std::stop_token stop) {
  for (;;) {
    FillQueue due;
    {
      auto state = state_.lock();
      if (!state.wait(wake_, stop, [&] { return !state->watched.empty(); })) return;
      state.wait_until(wake_, stop, std::chrono::steady_clock::now() + kTick, [] { return false; });
      if (stop.stop_requested()) return;
      due = std::exchange(state->watched, {});
    }
    while (!due.empty()) {
      const BlobFillPtr fill = due.pop();
      if (fill->tick()) watch(fill);
    }
  }
}

}  // namespace weightfs::fetch
