// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "fetch/fill_queue.hpp"
#include "fetch/part.hpp"

#include <array>
#include <condition_variable>
#include <cstddef>
#include <list>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

namespace weightfs::fetch {

/// The connections: threads "fetch-N", started as needed, that each run one part at a time. Takes
/// the most urgent kind of work that any fill has, and of that kind one part from each fill in
/// turn; but of what is prepared in the background, the fill that comes first by its Precedence.
///
/// A part that was told to stop (its fill has failed, or gave it up) and that does not come back
/// (an NFS server that is gone holds it in the kernel) is lost: its connection counts no more, and
/// another thread takes its place, up to four times as many as there are connections. A source that
/// has lost kMostLost gets none before some come back. Work for which there is no thread stays
/// queued.
///
/// Thread-safe. The destructor stops and joins; what runs must have been told to stop before.
class PartWorkers {
 public:
  static constexpr std::size_t kMostLost = 16;

  explicit PartWorkers(unsigned connections);
  PartWorkers(const PartWorkers&) = delete;
  PartWorkers& operator=(const PartWorkers&) = delete;
  ~PartWorkers();

  /// Never throws for want of a thread.
  void ready(const BlobFillPtr& fill, Urgency urgency);
  /// Work waits, and every connection is in use.
  [[nodiscard]] bool crowded() const;
  /// Joins. Nothing is taken on afterwards.
  void stop();

 private:
  /// What one thread is at; in State::works while it is.
  struct Work {
    BlobFillPtr fill;
    Urgency urgency = Urgency::kDemand;
    bool kept_out = false;
    std::stop_token stop;  ///< of its part
  };
  struct State {
    std::array<FillQueue, kUrgencies> queues;
    std::vector<std::jthread> threads;
    std::list<Work> works;
    unsigned idle = 0;  ///< threads that wait for work
    bool stopped = false;

    [[nodiscard]] std::size_t waiting() const noexcept;
    [[nodiscard]] std::size_t lost() const noexcept;
    [[nodiscard]] std::size_t lost_to(const source::Source& source) const noexcept;
    [[nodiscard]] BlobFillPtr pop(Urgency& urgency);
  };
  void grow(State& state);
  void work(std::stop_token stop);
  using Taken = std::list<Work>::iterator;
  /// nullopt to stop.
  [[nodiscard]] std::optional<Taken> take(std::stop_token stop);
  void put_back(Taken work);

  const unsigned connections_;
  Synchronized<State> state_;
  std::condition_variable_any wake_;
};

}  // namespace weightfs::fetch
