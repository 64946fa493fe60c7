// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "fetch/fill_queue.hpp"

#include <condition_variable>
#include <stop_token>
#include <thread>
#include <vector>

namespace weightfs::fetch {

/// Threads "hash-N" that take the hash of fills further, each fill in turn. Thread-safe. The
/// destructor stops and joins.
class HashWorkers {
 public:
  explicit HashWorkers(unsigned threads);
  HashWorkers(const HashWorkers&) = delete;
  HashWorkers& operator=(const HashWorkers&) = delete;
  ~HashWorkers();

  void push(const BlobFillPtr& fill);
  /// Joins. Nothing is taken on afterwards.
  void stop();

 private:
  struct State {
    FillQueue queue;
    bool stopped = false;
  };
  void work(std::stop_token stop);

  Synchronized<State> state_;
  std::condition_variable_any wake_;
  std::vector<std::jthread> threads_;
};

}  // namespace weightfs::fetch
