// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/part_workers.hpp"

#include "base/thread.hpp"
#include "fetch/blob_fill.hpp"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

namespace weightfs::fetch {

std::size_t PartWorkers::State::waiting() const noexcept {
  std::size_t count = 0;
  for (const FillQueue& queue : queues) count += queue.size();
  return count;
}

PartWorkers::PartWorkers(unsigned connections) : connections_(std::max(1U, connections)) {
}

PartWorkers::~PartWorkers() {
  stop();
}

void PartWorkers::ready(const BlobFillPtr& fill, Urgency urgency) {
  state_.with([&](State& state) {
    if (state.stopped) return;
    state.queues[static_cast<std::size_t>(urgency)].push(fill);
    if (state.waiting() > state.idle && state.threads.size() < connections_) grow(state);
  });
  wake_.notify_one();
}

void PartWorkers::grow(State& state) {
  try {
    state.threads.push_back(start_thread("fetch-" + std::to_string(state.threads.size()),
                                         [this](std::stop_token stop) { work(std::move(stop)); }));
  } catch (const std::system_error&) {
    if (state.threads.empty()) throw;  // else those that there are will come to it
  }
}

void PartWorkers::stop() {
  std::vector<std::jthread> threads;
  std::array<FillQueue, kUrgencies> dropped;
  state_.with([&](State& state) {
    state.stopped = true;
    threads = std::exchange(state.threads, {});
    dropped = std::exchange(state.queues, {});
  });
  for (std::jthread& thread : threads) thread.request_stop();
  threads.clear();
}

void PartWorkers::work(std::stop_token stop) {
  for (;;) {
    const Work work = take(stop);
    if (!work.fill) return;
    const auto part = work.fill->next_part(work.urgency);
    if (!part) continue;
    ready(work.fill, work.urgency);  // at the end of the queue, with its next part
    work.fill->run(*part);
  }
}

PartWorkers::Work PartWorkers::take(std::stop_token stop) {
  auto state = state_.lock();
  ++state->idle;
  const bool woken = state.wait(wake_, stop, [&] { return state->waiting() > 0; });
  --state->idle;
  if (!woken || stop.stop_requested()) return {};
  for (const Urgency urgency : {Urgency::kDemand, Urgency::kFile, Urgency::kBackground}) {
    FillQueue& queue = state->queues[static_cast<std::size_t>(urgency)];
    if (!queue.empty()) return {queue.pop(), urgency};
  }
  return {};
}

}  // namespace weightfs::fetch
