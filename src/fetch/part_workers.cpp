// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/part_workers.hpp"

#include "base/thread.hpp"
#include "fetch/blob_fill.hpp"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

namespace weightfs::fetch {

namespace {

/// Times the connections: threads in all, those included that may never come back.
constexpr std::size_t kMostThreads = 4;

}  // namespace

std::size_t PartWorkers::State::waiting() const noexcept {
  std::size_t count = 0;
  for (const FillQueue& queue : queues) count += queue.size();
  return count;
}

std::size_t PartWorkers::State::lost() const noexcept {
  return static_cast<std::size_t>(std::count_if(
      works.begin(), works.end(), [](const Work& work) { return work.stop.stop_requested(); }));
}

std::size_t PartWorkers::State::lost_to(const source::Source& source) const noexcept {
  return static_cast<std::size_t>(std::count_if(works.begin(), works.end(), [&](const Work& work) {
    return work.stop.stop_requested() && work.fill->target().source.get() == &source;
  }));
}

BlobFillPtr PartWorkers::State::pop(Urgency& urgency) {
  for (const Urgency one : {Urgency::kDemand, Urgency::kFile, Urgency::kBackground}) {
    FillQueue& queue = queues[static_cast<std::size_t>(one)];
    if (queue.empty()) continue;
    urgency = one;
    return one == Urgency::kBackground ? queue.pop_preceding() : queue.pop();
  }
  return nullptr;
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
    grow(state);
  });
  wake_.notify_one();
}

bool PartWorkers::crowded() const {
  return state_.with([&](const State& state) {
    return state.waiting() > state.idle && state.works.size() >= connections_ + state.lost();
  });
}

void PartWorkers::grow(State& state) {
  if (state.waiting() <= state.idle) return;
  const std::size_t ceiling = connections_ + state.lost();
  if (state.threads.size() >= std::min<std::size_t>(ceiling, kMostThreads * connections_)) return;
  try {
    state.threads.push_back(start_thread("fetch-" + std::to_string(state.threads.size()),
                                         [this](std::stop_token stop) { work(std::move(stop)); }));
  } catch (const std::exception&) {
    // The work stays where it is. Whoever waits for it asks again with each tick of the timer,
    // and has a deadline.
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
  while (const auto taken = take(stop)) {
    const Work& work = **taken;
    if (work.kept_out) {
      work.fill->keep_out();
    } else if (const auto part = work.fill->next_part(work.urgency)) {
      state_.with([&](State&) { (*taken)->stop = part->stop.get_token(); });
      ready(work.fill, work.urgency);  // at the end of the queue, with its next part
      work.fill->run(*part);
    }
    put_back(*taken);
  }
}

std::optional<PartWorkers::Taken> PartWorkers::take(std::stop_token stop) {
  auto state = state_.lock();
  ++state->idle;
  const bool woken = state.wait(wake_, stop, [&] {
    return state->waiting() > 0 && state->works.size() < connections_ + state->lost();
  });
  --state->idle;
  if (!woken || stop.stop_requested()) return std::nullopt;
  Work work;
  work.fill = state->pop(work.urgency);
  work.kept_out = state->lost_to(*work.fill->target().source) >= kMostLost;
  state->works.push_front(std::move(work));
  return state->works.begin();
}

void PartWorkers::put_back(Taken work) {
  std::list<Work> done;  // its fill may go with it, without the lock
  state_.with([&](State& state) { done.splice(done.begin(), state.works, work); });
}

}  // namespace weightfs::fetch
