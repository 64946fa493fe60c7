// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "telemetry/event.hpp"

#include <utility>

namespace weightfs::telemetry {

/// Who records events. Thread-safe; waits for neither disk nor network, and its locks are leaves.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void put(Event event) noexcept = 0;
};

/// Where a part of the daemon tells what it did: a value that is handed down, as a Log is.
/// Thread-safe. The sink must outlive it.
class Events {
 public:
  /// Nobody hears.
  Events() = default;
  explicit Events(EventSink& sink) noexcept : sink_(&sink) {}

  void put(Event event) const noexcept {
    if (sink_ != nullptr) sink_->put(std::move(event));
  }

 private:
  EventSink* sink_ = nullptr;
};

}  // namespace weightfs::telemetry
