// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "fetch/fill_queue.hpp"

#include <condition_variable>
#include <stop_token>
#include <thread>

namespace weightfs::fetch {

/// The thread "fetch-timer": lets time pass for fills that wait for it, retries and deadlines.
/// Sleeps while there is none. Thread-safe. The destructor stops and joins.
class FetchTimer {
 public:
  FetchTimer();
  FetchTimer(const FetchTimer&) = delete;
  FetchTimer& operator=(const FetchTimer&) = delete;
  ~FetchTimer();

  /// Calls BlobFill::tick() again and again until it says that it need not.
  void watch(const BlobFillPtr& fill);
  /// Joins. Nothing is taken on afterwards.
  void stop();

 private:
  struct State {
    FillQueue watched;
    bool stopped = false;
  };
  void run(std::stop_token stop);

  Synchronized<State> state_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

}  // namespace weightfs::fetch
