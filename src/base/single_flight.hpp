// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/error.hpp"
#include "base/synchronized.hpp"

#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <stop_token>
#include <utility>

namespace weightfs {

/// Of those who want the same at the same time one finds it out, and the others get what it found.
/// An error is for all of them, but for "cancelled": then the next one goes on. Nothing is kept
/// for those who come later. Thread-safe.
template <class Key, class Value>
class SingleFlight {
 public:
  /// `find` is called on the thread of the first, without a lock. Error(kCancelled) once `stop` is
  /// requested.
  template <class Find>
  Value get(const Key& key, const std::stop_token& stop, const Find& find) {
    for (;;) {
      auto [flight, first] = join(key);
      if (first) return lead(key, flight, find);
      if (const auto value = flight->wait(stop)) return *value;
    }
  }

 private:
  struct Result {
    bool over = false;
    bool cancelled = false;
    std::shared_ptr<const Value> value;
    std::exception_ptr error;
  };
  struct Flight {
    Synchronized<Result> result;
    std::condition_variable_any landed;

    void land(const Result& found) {
      result.with([&](Result& mine) { mine = found; });
      landed.notify_all();
    }
    /// Null where whoever found it out was cancelled.
    std::shared_ptr<const Value> wait(const std::stop_token& stop) {
      auto locked = result.lock();
      if (!locked.wait(landed, stop, [&] { return locked->over; })) {
        throw Error(Errc::kCancelled, "cancelled");
      }
      if (locked->error && !locked->cancelled) std::rethrow_exception(locked->error);
      return locked->value;
    }
  };
  using FlightPtr = std::shared_ptr<Flight>;

  std::pair<FlightPtr, bool> join(const Key& key) {
    return flights_.with([&](auto& flights) -> std::pair<FlightPtr, bool> {
      const auto [at, added] = flights.try_emplace(key);
      if (added) at->second = std::make_shared<Flight>();
      return {at->second, added};
    });
  }

  template <class Find>
  Value lead(const Key& key, const FlightPtr& flight, const Find& find) {
    Result result{.over = true, .cancelled = false, .value = nullptr, .error = nullptr};
    try {
      result.value = std::make_shared<const Value>(find());
    } catch (const Error& error) {
      result.cancelled = error.code() == Errc::kCancelled;
      result.error = std::current_exception();
    } catch (...) {
      result.error = std::current_exception();
    }
    flights_.with([&](auto& flights) { flights.erase(key); });
    flight->land(result);
    if (result.error) std::rethrow_exception(result.error);
    return *result.value;
  }

  Synchronized<std::map<Key, FlightPtr>> flights_;
};

}  // namespace weightfs
