// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/retry_schedule.hpp"

#include <catch2/catch_test_macros.hpp>

namespace weightfs::fetch {
namespace {

using namespace std::chrono_literals;
using TimePoint = RetrySchedule::TimePoint;

constexpr TimePoint kStart = TimePoint() + 1h;
constexpr net::RetryOptions kOptions{.first_delay = 200ms, .max_delay = 8'000ms};

const TransientError kReset(Errc::kUnavailable, "reset");

TEST_CASE("the rest of a failed part waits for its delay") {
  RetrySchedule schedule(kOptions, 1);
  CHECK_FALSE(schedule.waiting(kStart));
  schedule.on_failure({100, 200}, kReset, kStart);
  CHECK(schedule.waiting(kStart));
  CHECK(schedule.take_due(kStart + 99ms).empty());
  CHECK(schedule.take_due(kStart + 200ms) == std::vector<ByteRange>{{100, 200}});
  CHECK(schedule.take_due(kStart + 200ms).empty());
  CHECK_FALSE(schedule.waiting(kStart + 200ms));
}

TEST_CASE("without bytes nothing new is started before the delay is over") {
  RetrySchedule schedule(kOptions, 1);
  schedule.on_failure({0, 10}, kReset, kStart);
  CHECK_FALSE(schedule.may_start(kStart + 99ms));
  CHECK(schedule.may_start(kStart + 200ms));
  CHECK(schedule.probing());
}

TEST_CASE("where a place fails twice the next probe goes elsewhere, until bytes come") {
  RetrySchedule schedule(kOptions, 1);
  schedule.on_failure({100, 200}, kReset, kStart);
  CHECK_FALSE(schedule.avoid());
  schedule.on_failure({100, 200}, kReset, kStart + 200ms);
  CHECK(schedule.avoid() == 100);
  schedule.on_bytes({500, 600});
  CHECK_FALSE(schedule.avoid());
}

TEST_CASE("delays grow from failure to failure, and bytes begin them anew") {
  RetrySchedule schedule(kOptions, 1);
  TimePoint now = kStart;
  for (const auto longest : {200ms, 400ms, 800ms, 1600ms, 3200ms}) {
    schedule.on_failure({0, 10}, kReset, now);
    CHECK_FALSE(schedule.may_start(now + longest / 2 - 1ms));
    now += longest;
    CHECK(schedule.may_start(now));
  }
  schedule.on_bytes({50, 60});
  CHECK(schedule.may_start(kStart));
  CHECK_FALSE(schedule.probing());
  schedule.on_failure({0, 10}, kReset, kStart);
  CHECK(schedule.may_start(kStart + 200ms));
}

TEST_CASE("connections that break together are one failure") {
  RetrySchedule schedule(kOptions, 1);
  for (std::uint64_t i = 0; i < 16; ++i) {
    schedule.on_failure({i * 10, i * 10 + 10}, kReset, kStart + i * 1ms);
  }
  CHECK(schedule.may_start(kStart + 215ms));
  CHECK(schedule.take_due(kStart + 215ms).size() == 16);
  CHECK_FALSE(schedule.avoid());
  schedule.on_failure({0, 10}, kReset, kStart + 215ms);  // the probe
  CHECK_FALSE(schedule.may_start(kStart + 414ms));
  CHECK(schedule.may_start(kStart + 615ms));
}

TEST_CASE("other connections' bytes do not shorten a wait that the source asked for") {
  RetrySchedule schedule(kOptions, 1);
  schedule.on_failure({0, 10}, TransientError(Errc::kUnavailable, "429", 5s), kStart);
  schedule.on_bytes({50, 60});
  CHECK_FALSE(schedule.may_start(kStart + 4999ms));
  CHECK(schedule.may_start(kStart + 6s));
}

TEST_CASE("a byte that fails again and again is known by its age, until it comes") {
  RetrySchedule schedule(kOptions, 1);
  CHECK_FALSE(schedule.failing_since());
  schedule.on_failure({100, 200}, kReset, kStart);
  schedule.on_bytes({500, 600});
  schedule.on_failure({100, 200}, kReset, kStart + 10s);
  CHECK(schedule.failing_since() == kStart);
  schedule.on_bytes({100, 110});
  CHECK_FALSE(schedule.failing_since());
}

TEST_CASE("when nobody wants anything, old failures are forgotten") {
  RetrySchedule schedule(kOptions, 1);
  schedule.on_failure({100, 200}, kReset, kStart);
  schedule.forget_failures();
  CHECK_FALSE(schedule.failing_since());
  CHECK_FALSE(schedule.probing());
  CHECK(schedule.may_start(kStart));
}

}  // namespace
}  // namespace weightfs::fetch
