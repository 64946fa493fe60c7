// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "fetch/fill_queue.hpp"

#include <chrono>
#include <condition_variable>
#include <stop_token>
#include <thread>

namespace weightfs::fetch {

/// The thread "fetch-sync": flushes what fills have written every so often, and closes fills that
/// have failed or that nobody needs any more. Apart from the timer, because a flush can take
/// seconds. Thread-safe. The destructor stops and joins.
class Checkpointer {
 public:
  explicit Checkpointer(std::chrono::milliseconds interval);
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;
  ~Checkpointer();

  void dirty(const BlobFillPtr& fill);
  void idle(const BlobFillPtr& fill);
  /// Joins, and closes what is still to be closed. Nothing is taken on afterwards.
  void stop();

 private:
  struct State {
    FillQueue dirty;
    FillQueue idle;
    bool stopped = false;
  };
  void run(std::stop_token stop);

  const std::chrono::milliseconds interval_;
  Synchronized<State> state_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

}  // namespace weightfs::fetch
