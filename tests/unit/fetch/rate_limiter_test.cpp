// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/rate_limiter.hpp"

#include "base/thread.hpp"
#include "fetch_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

namespace weightfs::fetch {
namespace {

using namespace std::chrono_literals;
using Outcome = RateLimiter::Outcome;

/// Time that passes only where the test says so.
class StillClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const noexcept override {
    return TimePoint() + 1h + std::chrono::milliseconds(passed_.load());
  }
  [[nodiscard]] std::chrono::system_clock::time_point wall() const noexcept override { return {}; }
  void advance(std::chrono::milliseconds by) { passed_ += by.count(); }

 private:
  std::atomic<std::int64_t> passed_{0};
};

/// A limiter of 1000 bytes per second whose burst is gone, and threads that wait at it.
class LimiterFixture {
 public:
  LimiterFixture() { REQUIRE(limiter.try_take(51, Urgency::kDemand)); }

  /// A waiter that writes its name down when it has passed. Returns once it waits.
  struct Waiter {
    std::atomic<Urgency> urgency;
    std::atomic<bool> wanted = true;
    std::atomic<unsigned> asked = 0;
    std::atomic<bool> over = false;
    std::atomic<Outcome> outcome = Outcome::kPassed;
    std::jthread thread;
  };
  std::unique_ptr<Waiter> wait(std::string name, Urgency urgency, std::uint64_t bytes = 10) {
    auto waiter = std::make_unique<Waiter>();
    Waiter& self = *waiter;
    self.urgency = urgency;
    const unsigned before = queued;
    self.thread = start_thread("waiter", [this, &self, name, bytes](const std::stop_token& stop) {
      const RateLimiter::Asker asker{.owner = &self, .urgency = [&]() -> std::optional<Urgency> {
                                       ++self.asked;
                                       ++queued;
                                       if (!self.wanted) return std::nullopt;
                                       return self.urgency.load();
                                     }};
      self.outcome = limiter.take(bytes, asker, stop);
      if (self.outcome == Outcome::kPassed) {
        passed.with([&](std::vector<std::string>& names) { names.push_back(name); });
      }
      self.over = true;
    });
    REQUIRE(eventually([&] { return queued > before; }));
    return waiter;
  }
  [[nodiscard]] std::vector<std::string> names() const {
    return passed.with([](const std::vector<std::string>& names) { return names; });
  }
  [[nodiscard]] bool passes(std::size_t count) {
    return eventually([&] { return names().size() == count; });
  }

  StillClock clock;
  RateLimiter limiter{clock, 1000};
  std::atomic<unsigned> queued = 0;
  Synchronized<std::vector<std::string>> passed;
};

TEST_CASE_METHOD(LimiterFixture, "bytes pass once their time has come, not before") {
  CHECK_FALSE(limiter.try_take(1, Urgency::kDemand));
  const auto waiter = wait("a", Urgency::kDemand, 9);
  clock.advance(1ms);
  REQUIRE(passes(1));
  clock.advance(8ms);
  CHECK_FALSE(limiter.try_take(1, Urgency::kDemand));
  clock.advance(1ms);
  CHECK(limiter.try_take(1, Urgency::kDemand));
}

TEST_CASE_METHOD(LimiterFixture, "the more urgent pass first, and of one urgency the first come") {
  std::vector<std::unique_ptr<Waiter>> waiters;
  // The first waits for time; the others come behind it, or before it.
  for (const auto& [name, urgency] :
       std::vector<std::pair<std::string, Urgency>>{{"background 1", Urgency::kBackground},
                                                    {"background 2", Urgency::kBackground},
                                                    {"file 1", Urgency::kFile},
                                                    {"demand 1", Urgency::kDemand},
                                                    {"file 2", Urgency::kFile},
                                                    {"demand 2", Urgency::kDemand}}) {
    waiters.push_back(wait(name, urgency));
  }
  // Queued is what asked was just before: give the last the time to be.
  REQUIRE(eventually([&] { return limiter.waiting() == 6; }));
  for (std::size_t i = 1; i <= 6; ++i) {
    clock.advance(10ms);
    REQUIRE(passes(i));
  }
  CHECK(names() == std::vector<std::string>{"demand 1", "demand 2", "file 1", "file 2",
                                            "background 1", "background 2"});
}

TEST_CASE_METHOD(LimiterFixture, "nobody takes what somebody as urgent waits for") {
  const auto waiter = wait("file", Urgency::kFile);
  REQUIRE(eventually([&] { return limiter.waiting() == 1; }));
  CHECK_FALSE(limiter.try_take(1, Urgency::kFile));
  CHECK_FALSE(limiter.try_take(1, Urgency::kBackground));
  clock.advance(1ms);
  REQUIRE(passes(1));
}

TEST_CASE_METHOD(LimiterFixture, "a wait that has become urgent overtakes") {
  const auto first = wait("first", Urgency::kFile);
  const auto second = wait("second", Urgency::kBackground);
  REQUIRE(eventually([&] { return limiter.waiting() == 2; }));
  REQUIRE(eventually([&] { return second->asked == 2; }));  // before it waits, and once more then
  second->urgency = Urgency::kDemand;
  limiter.look_again(second.get());
  REQUIRE(eventually([&] { return second->asked == 3; }));
  clock.advance(1ms);
  REQUIRE(passes(1));
  clock.advance(10ms);
  REQUIRE(passes(2));
  CHECK(names() == std::vector<std::string>{"second", "first"});
}

TEST_CASE_METHOD(LimiterFixture, "a stop ends a wait at once, and takes nothing") {
  const auto first = wait("first", Urgency::kDemand);
  const auto second = wait("second", Urgency::kDemand);
  REQUIRE(eventually([&] { return limiter.waiting() == 2; }));
  second->thread.request_stop();
  REQUIRE(eventually([&] { return second->over.load(); }));
  CHECK(second->outcome == Outcome::kStopped);
  first->thread.request_stop();
  REQUIRE(eventually([&] { return first->over.load(); }));
  clock.advance(1ms);
  CHECK(limiter.try_take(1, Urgency::kBackground));
}

TEST_CASE_METHOD(LimiterFixture, "a wait for bytes that nobody wants any more ends") {
  const auto waiter = wait("a", Urgency::kFile);
  REQUIRE(eventually([&] { return limiter.waiting() == 1; }));
  waiter->wanted = false;
  limiter.look_again(waiter.get());
  REQUIRE(eventually([&] { return waiter->over.load(); }));
  CHECK(waiter->outcome == Outcome::kUnwanted);
}

TEST_CASE_METHOD(LimiterFixture, "the least urgent and latest gives way; a demand never does") {
  const auto demand = wait("demand", Urgency::kDemand);
  const auto file = wait("file", Urgency::kFile);
  const auto early = wait("early", Urgency::kBackground);
  const auto late = wait("late", Urgency::kBackground);
  REQUIRE(eventually([&] { return limiter.waiting() == 4; }));
  for (Waiter* const next : {late.get(), early.get(), file.get()}) {
    CHECK_FALSE(next->over);
    limiter.make_way(nullptr);
    REQUIRE(eventually([&] { return next->over.load(); }));
    CHECK(next->outcome == Outcome::kGaveWay);
  }
  limiter.make_way(nullptr);
  limiter.make_way(demand.get());
  clock.advance(1ms);
  REQUIRE(passes(1));
}

TEST_CASE_METHOD(LimiterFixture, "who was asked to give way and has become a demand stays") {
  const auto waiter = wait("a", Urgency::kFile);
  REQUIRE(eventually([&] { return limiter.waiting() == 1; }));
  REQUIRE(eventually([&] { return waiter->asked == 2; }));
  waiter->urgency = Urgency::kDemand;
  limiter.make_way(nullptr);
  REQUIRE(eventually([&] { return waiter->asked == 3; }));
  clock.advance(1ms);
  REQUIRE(passes(1));
}

TEST_CASE_METHOD(LimiterFixture, "without a limit any more everybody passes") {
  const auto first = wait("first", Urgency::kDemand, 1'000'000);
  const auto second = wait("second", Urgency::kBackground, 1'000'000);
  REQUIRE(eventually([&] { return limiter.waiting() == 2; }));
  limiter.set_rate(0);
  REQUIRE(passes(2));
}

TEST_CASE_METHOD(LimiterFixture, "time in which anybody waited is counted once") {
  CHECK(limiter.waited() == 0ms);
  const auto first = wait("first", Urgency::kDemand, 10);
  const auto second = wait("second", Urgency::kDemand, 10);
  REQUIRE(eventually([&] { return limiter.waiting() == 2; }));
  clock.advance(1ms);
  REQUIRE(passes(1));
  CHECK(limiter.waited() == 1ms);
  clock.advance(10ms);
  REQUIRE(passes(2));
  clock.advance(1h);
  CHECK(limiter.waited() == 11ms);
}

TEST_CASE("no limit is no wait") {
  const StillClock clock;
  RateLimiter limiter(clock, 0);
  CHECK_FALSE(limiter.limited());
  CHECK(limiter.try_take(~0ULL, Urgency::kBackground));
  CHECK(limiter.try_take(~0ULL, Urgency::kBackground));
}

}  // namespace
}  // namespace weightfs::fetch
