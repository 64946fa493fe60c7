// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace weightfs {

/// A value that can only be reached through its lock.
///
///     Synchronized<Counters> counters;
///     counters.with([](Counters& c) { ++c.hits; });
///     auto locked = queue.lock();            // for condition variables
///     locked.wait_until(cv, deadline, [&] { return !locked->empty(); });
///
/// Thread-safe. A Locked must not outlive its Synchronized, and must not be held across I/O,
/// callbacks or replies to the kernel.
template <class T>
class Synchronized {
 public:
  class Locked {
   public:
    T* operator->() noexcept { return value_; }
    T& operator*() noexcept { return *value_; }

    template <class Predicate>
    void wait(std::condition_variable_any& cv, Predicate predicate) {
      cv.wait(lock_, std::move(predicate));
    }
    /// Returns what the predicate says when the wait ends.
    template <class Deadline, class Predicate>
    bool wait_until(std::condition_variable_any& cv, Deadline deadline, Predicate predicate) {
      return cv.wait_until(lock_, deadline, std::move(predicate));
    }
    /// The same, also ended by a stop request.
    template <class StopToken, class Predicate>
    bool wait(std::condition_variable_any& cv, StopToken stop, Predicate predicate) {
      return cv.wait(lock_, std::move(stop), std::move(predicate));
    }
    template <class StopToken, class Deadline, class Predicate>
    bool wait_until(std::condition_variable_any& cv, StopToken stop, Deadline deadline,
                    Predicate predicate) {
      return cv.wait_until(lock_, std::move(stop), deadline, std::move(predicate));
    }

   private:
    friend class Synchronized;
    Locked(std::mutex& mutex, T& value) : lock_(mutex), value_(&value) {}
    std::unique_lock<std::mutex> lock_;
    T* value_;
  };

  Synchronized() = default;
  explicit Synchronized(T value) : value_(std::move(value)) {}

  [[nodiscard]] Locked lock() { return Locked(mutex_, value_); }

  template <class F>
  decltype(auto) with(F&& f) {
    std::lock_guard guard(mutex_);
    return std::forward<F>(f)(value_);
  }
  template <class F>
  decltype(auto) with(F&& f) const {
    std::lock_guard guard(mutex_);
    return std::forward<F>(f)(std::as_const(value_));
  }

 private:
  mutable std::mutex mutex_;
  T value_{};
};

}  // namespace weightfs
