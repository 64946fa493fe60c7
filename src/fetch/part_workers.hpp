// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "fetch/fill_queue.hpp"
#include "fetch/part.hpp"

#include <array>
#include <condition_variable>
#include <stop_token>
#include <thread>
#include <vector>

namespace weightfs::fetch {

/// The connections: threads "fetch-N", started as needed, that each run one part at a time. Takes
/// the most urgent kind of work that any fill has, and of that kind one part from each fill in
/// turn. Thread-safe. The destructor stops and joins; what runs must have been told to stop before.
class PartWorkers {
 public:
  explicit PartWorkers(unsigned connections);
  PartWorkers(const PartWorkers&) = delete;
  PartWorkers& operator=(const PartWorkers&) = delete;
  ~PartWorkers();

  void ready(const BlobFillPtr& fill, Urgency urgency);
  /// Joins. Nothing is taken on afterwards.
  void stop();

 private:
  struct Work {
    BlobFillPtr fill;
    Urgency urgency = Urgency::kDemand;
  };
  struct State {
    std::array<FillQueue, kUrgencies> queues;
    std::vector<std::jthread> threads;
    unsigned idle = 0;  ///< threads that wait for work
    bool stopped = false;

    [[nodiscard]] std::size_t waiting() const noexcept;
  };
  void grow(State& state);
  void work(std::stop_token stop);
  [[nodiscard]] Work take(std::stop_token stop);

  const unsigned connections_;
  Synchronized<State> state_;
  std::condition_variable_any wake_;
};

}  // namespace weightfs::fetch
