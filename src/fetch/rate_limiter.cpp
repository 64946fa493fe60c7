// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/rate_limiter.hpp"

#include <algorithm>
#include <condition_variable>
#include <utility>

namespace weightfs::fetch {

namespace {

/// The clock need not be the one that threads sleep by: whoever is next looks at it this often.
constexpr std::chrono::milliseconds kLook{20};

}  // namespace

/// Lives on the stack of the thread that waits; everything in it is under the lock.
struct RateLimiter::Waiter {
  const void* owner = nullptr;
  Urgency urgency = Urgency::kBackground;
  bool poked = false;     ///< something has changed for it
  bool asked = false;     ///< ... its urgency
  bool give_way = false;  ///< ... it should go, unless it has become a demand
  std::condition_variable_any wake;

  void poke() {
    poked = true;
    wake.notify_one();
  }
};

RateLimiter::RateLimiter(const Clock& clock, std::uint64_t rate)
    : clock_(clock),
      rate_(rate),
      state_(State{.bucket = TokenBucket(rate), .queues = {}, .waited = {}, .waiting_since = {}}) {
}

RateLimiter::Waiter* RateLimiter::State::head() const noexcept {
  for (const Queue& queue : queues) {
    if (!queue.empty()) return queue.front();
  }
  return nullptr;
}

bool RateLimiter::try_take(std::uint64_t bytes, Urgency urgency) {
  if (!limited()) return true;
  const Clock::TimePoint now = clock_.now();
  return state_.with([&](State& state) {
    const Waiter* const head = state.head();
    if ((head && head->urgency <= urgency) || now < state.bucket.ready_at()) return false;
    state.bucket.take(bytes, now);
    return true;
  });
}

RateLimiter::Outcome RateLimiter::take(std::uint64_t bytes, const Asker& asker,
                                       std::stop_token stop) {
  Waiter waiter;
  waiter.owner = asker.owner;
  const auto first = asker.urgency();
  if (!first) return Outcome::kUnwanted;
  waiter.asked = true;  // again, in the queue: a reader may have come before others could find it
  state_.with([&](State& state) { enter(state, waiter, *first); });
  for (;;) {
    const Woken woken = wait(waiter, bytes, stop);
    if (woken == Woken::kPassed) return Outcome::kPassed;
    if (woken == Woken::kStopped) return Outcome::kStopped;
    const auto now = asker.urgency();
    const bool gone = state_.with([&](State& state) {
      if (now && *now < waiter.urgency) {
        remove(state, waiter);
        waiter.urgency = *now;
        state.queues[static_cast<std::size_t>(*now)].push_back(&waiter);
      }
      const bool asked_to_go = std::exchange(waiter.give_way, false);
      if (now && (!asked_to_go || *now == Urgency::kDemand)) return false;
      leave(state, waiter);
      return true;
    });
    if (gone) return now ? Outcome::kGaveWay : Outcome::kUnwanted;
  }
}

RateLimiter::Woken RateLimiter::wait(Waiter& waiter, std::uint64_t bytes,
                                     const std::stop_token& stop) {
  auto state = state_.lock();
  for (;;) {
    if (stop.stop_requested()) {
      leave(*state, waiter);
      return Woken::kStopped;
    }
    waiter.poked = false;
    if (std::exchange(waiter.asked, false)) return Woken::kAsked;
    const auto poked = [&] { return waiter.poked; };
    if (state->head() != &waiter) {
      state.wait(waiter.wake, stop, poked);
      continue;
    }
    const Clock::TimePoint now = clock_.now();
    const auto rest = state->bucket.ready_at() - now;
    if (rest <= rest.zero()) {
      state->bucket.take(bytes, now);
      leave(*state, waiter);
      return Woken::kPassed;
    }
    const auto until =
        std::chrono::steady_clock::now() + std::min<Clock::TimePoint::duration>(rest, kLook);
    state.wait_until(waiter.wake, stop, until, poked);
  }
}

void RateLimiter::enter(State& state, Waiter& waiter, Urgency urgency) const {
  if (!state.head()) state.waiting_since = clock_.now();
  waiter.urgency = urgency;
  state.queues[static_cast<std::size_t>(urgency)].push_back(&waiter);
}

void RateLimiter::remove(State& state, Waiter& waiter) {
  state.queues[static_cast<std::size_t>(waiter.urgency)].remove(&waiter);
}

void RateLimiter::leave(State& state, Waiter& waiter) const {
  remove(state, waiter);
  if (Waiter* const next = state.head()) {
    next->poke();
  } else {
    state.waited += clock_.now() - state.waiting_since;
  }
}

void RateLimiter::look_again(const void* owner) {
  if (!limited()) return;
  state_.with([&](State& state) {
    for (const Urgency urgency : {Urgency::kFile, Urgency::kBackground}) {
      for (Waiter* const waiter : state.queues[static_cast<std::size_t>(urgency)]) {
        if (waiter->owner != owner) continue;
        waiter->asked = true;
        waiter->poke();
      }
    }
  });
}

void RateLimiter::make_way(const void* owner) {
  if (!limited()) return;
  state_.with([&](State& state) {
    for (const Urgency urgency : {Urgency::kBackground, Urgency::kFile}) {
      Queue& queue = state.queues[static_cast<std::size_t>(urgency)];
      const auto found = std::find_if(queue.rbegin(), queue.rend(), [&](const Waiter* waiter) {
        return !owner || waiter->owner == owner;
      });
      if (found == queue.rend()) continue;
      (*found)->asked = (*found)->give_way = true;
      (*found)->poke();
      return;
    }
  });
}

void RateLimiter::set_rate(std::uint64_t rate) {
  state_.with([&](State& state) {
    rate_ = rate;
    state.bucket.set_rate(rate, clock_.now());
    if (Waiter* const head = state.head()) head->poke();
  });
}

std::size_t RateLimiter::waiting() const {
  return state_.with([](const State& state) {
    std::size_t count = 0;
    for (const Queue& queue : state.queues) count += queue.size();
    return count;
  });
}

std::chrono::nanoseconds RateLimiter::waited() const {
  return state_.with([&](const State& state) {
    return state.head() ? state.waited + (clock_.now() - state.waiting_since) : state.waited;
  });
}

}  // namespace weightfs::fetch
