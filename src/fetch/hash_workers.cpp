// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/hash_workers.hpp"

#include "base/thread.hpp"
#include "fetch/blob_fill.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace weightfs::fetch {

namespace {

/// Small enough to stay in the processor's cache between the read and the hash.
constexpr std::size_t kBuffer = 256 << 10;

}  // namespace

HashWorkers::HashWorkers(unsigned threads) {
  for (unsigned i = 0; i < std::max(1U, threads); ++i) {
    threads_.push_back(start_thread("hash-" + std::to_string(i),
                                    [this](std::stop_token stop) { work(std::move(stop)); }));
  }
}

HashWorkers::~HashWorkers() {
  stop();
}

void HashWorkers::push(const BlobFillPtr& fill) {
  state_.with([&](State& state) {
    if (!state.stopped) state.queue.push(fill);
  });
  wake_.notify_one();
}

void HashWorkers::stop() {
  FillQueue dropped;
  state_.with([&](State& state) {
    state.stopped = true;
    dropped = std::exchange(state.queue, {});
  });
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
}

void HashWorkers::work(std::stop_token stop) {
  std::vector<std::byte> buffer(kBuffer);
  for (;;) {
    BlobFillPtr fill;
    {
      auto state = state_.lock();
      if (!state.wait(wake_, stop, [&] { return !state->queue.empty(); })) return;
      fill = state->queue.pop();
    }
    fill->hash_step(buffer);
  }
}

}  // namespace weightfs::fetch
