// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "keeper/restart_policy.hpp"

#include <catch2/catch_test_macros.hpp>

#include <vector>

namespace weightfs::keeper {
namespace {

using std::chrono::milliseconds;
using Life = RestartPolicy::Life;

Life served(long way_up, long time) {
  return {.length = milliseconds(way_up + time), .served = milliseconds(time)};
}
Life silent(long length) {
  return {.length = milliseconds(length), .served = std::nullopt};
}

std::vector<long> pauses(RestartPolicy& policy, const Life& life, int lives) {
  std::vector<long> all;
  for (; lives > 0; --lives) all.push_back(policy.after(life).value().count());
  return all;
}

TEST_CASE("a daemon that dies as soon as it is up is started at once, then once in a second") {
  RestartPolicy policy;
  CHECK(pauses(policy, served(0, 0), 7) == std::vector<long>{0, 250, 500, 1000, 1000, 1000, 1000});
}

TEST_CASE("the time for which a daemon served is not waited for again") {
  RestartPolicy policy;
  CHECK(pauses(policy, served(300, 400), 6) == std::vector<long>{0, 0, 100, 600, 600, 600});
  CHECK(policy.after(served(300, 1000)) == milliseconds(0));
  CHECK(policy.after(served(300, 0)) == milliseconds(1000));
}

TEST_CASE("a daemon that is up late and dies then is not what the machine is busy with") {
  RestartPolicy policy;
  pauses(policy, served(0, 0), 8);
  CHECK(policy.after(served(3000, 100)) == milliseconds(2900));
  CHECK(policy.after(served(60'000, 0)) == milliseconds(5000));
}

TEST_CASE("a good life starts over") {
  RestartPolicy policy;
  pauses(policy, served(0, 50), 4);
  CHECK(policy.after(served(0, 10'000)) == milliseconds(0));
  CHECK(policy.after(served(0, 0)) == milliseconds(250));
}

TEST_CASE("five lives are enough where none has ever come up") {
  RestartPolicy policy;
  CHECK(pauses(policy, silent(1), 4) == std::vector<long>{0, 250, 500, 1000});
  CHECK_FALSE(policy.was_up());
  CHECK_FALSE(policy.after(silent(1)));
}

TEST_CASE("where daemons do not come up any more, pauses double to five seconds") {
  RestartPolicy policy;
  REQUIRE(policy.after(served(0, 20'000)) == milliseconds(0));
  CHECK(pauses(policy, silent(50), 7) == std::vector<long>{250, 500, 1000, 2000, 4000, 5000, 5000});
  CHECK(policy.after(silent(60'000)) == milliseconds(5000));  // long, but not a good one
}

TEST_CASE("a mount that was served waits ten minutes for the next daemon that comes up") {
  RestartPolicy policy;
  REQUIRE(policy.after(served(0, 1)));
  CHECK(policy.was_up());
  for (const Life& life : {silent(50), silent(120'000)}) {
    CAPTURE(life.length.count());
    milliseconds silence(0);
    while (const auto pause = policy.after(life)) silence += life.length + *pause;
    CHECK(silence + life.length >= RestartPolicy::kLongestSilence);
    CHECK(silence <= RestartPolicy::kLongestSilence + RestartPolicy::kLongestPause);
    REQUIRE(policy.after(served(0, 1)));  // starts over
  }
}

}  // namespace
}  // namespace weightfs::keeper
