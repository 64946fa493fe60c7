// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/error.hpp"
#include "base/synchronized.hpp"

#include <condition_variable>
#include <stop_token>

namespace weightfs::fetch {

/// Holds up whoever comes until it is opened. Thread-safe.
class Gate {
 public:
  void open() {
    state_.with([](State& state) { state.open = true; });
    changed_.notify_all();
  }

  /// Throws kCancelled on a stop request, as a source does.
  void wait(std::stop_token stop) {
    auto state = state_.lock();
    ++state->arrived;
    changed_.notify_all();
    if (!state.wait(changed_, std::move(stop), [&] { return state->open; })) {
      throw Error(Errc::kCancelled, "stopped at a gate");
    }
  }

  [[nodiscard]] unsigned arrived() const {
    return state_.with([](const State& state) { return state.arrived; });
  }

 private:
  struct State {
    bool open = false;
    unsigned arrived = 0;
  };
  Synchronized<State> state_;
  std::condition_variable_any changed_;
};

}  // namespace weightfs::fetch
