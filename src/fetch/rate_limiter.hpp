// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "base/synchronized.hpp"
#include "fetch/part.hpp"
#include "fetch/token_bucket.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <stop_token>

namespace weightfs::fetch {

/// Lets no more bytes per second pass than it was told (TokenBucket); those that are too many wait.
/// The more urgent go first, without exception: what is fetched ahead gets what readers leave. Of
/// the same urgency first come, first served, a chunk from each in turn. Urgency is not fixed when
/// a wait begins: a reader may come for bytes that nobody waited for.
///
/// Thread-safe. One thread waits for time to pass, the others to be the next. `clock` must outlive
/// it, and what waits must have been stopped before it goes.
class RateLimiter {
 public:
  /// `rate` is bytes per second; 0: no limit.
  RateLimiter(const Clock& clock, std::uint64_t rate);

  /// Who waits: named by `owner`, and as urgent as `urgency` says, which is asked without a lock.
  /// nullopt: the bytes are not wanted any more.
  struct Asker {
    const void* owner = nullptr;
    std::function<std::optional<Urgency>()> urgency;
  };
  enum class Outcome : std::uint8_t {
    kPassed,
    kStopped,   ///< the stop was requested
    kUnwanted,  ///< as the asker says
    kGaveWay,   ///< somebody else needs what the waiter holds: see make_way()
  };

  /// Takes the bytes, if nobody as urgent waits and the limit allows it now.
  [[nodiscard]] bool try_take(std::uint64_t bytes, Urgency urgency);
  /// Waits for them; nothing is taken where the outcome is not kPassed.
  [[nodiscard]] Outcome take(std::uint64_t bytes, const Asker& asker, std::stop_token stop);

  /// The owner's waits may have become more urgent, or unwanted: asks each of them.
  void look_again(const void* owner);
  /// Ends one wait, the least urgent and latest of those of `owner`, or of all where it is null.
  /// Demand waits on.
  void make_way(const void* owner);
  /// Also for those that wait.
  void set_rate(std::uint64_t rate);

  [[nodiscard]] std::uint64_t rate() const noexcept { return rate_; }
  [[nodiscard]] bool limited() const noexcept { return rate_ != 0; }
  [[nodiscard]] std::size_t waiting() const;
  /// For how long there has been somebody who waited, so far.
  [[nodiscard]] std::chrono::nanoseconds waited() const;

 private:
  struct Waiter;
  using Queue = std::list<Waiter*>;
  struct State {
    TokenBucket bucket;
    std::array<Queue, kUrgencies> queues;
    std::chrono::nanoseconds waited{};
    Clock::TimePoint waiting_since{};  ///< while anybody waits

    [[nodiscard]] Waiter* head() const noexcept;
  };

  void enter(State& state, Waiter& waiter, Urgency urgency) const;
  void leave(State& state, Waiter& waiter) const;
  static void remove(State& state, Waiter& waiter);
  enum class Woken : std::uint8_t { kPassed, kAsked, kStopped };
  [[nodiscard]] Woken wait(Waiter& waiter, std::uint64_t bytes, const std::stop_token& stop);

  const Clock& clock_;
  std::atomic<std::uint64_t> rate_;  ///< of the bucket, to be seen without the lock
  Synchronized<State> state_;
};

}  // namespace weightfs::fetch
