// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "keeper/restart_policy.hpp"

#include <catch2/catch_test_macros.hpp>

#include <vector>

namespace weightfs::keeper {
namespace {

using std::chrono::milliseconds;
using Life = RestartPolicy::Life;

TEST_CASE("a daemon that dies soon is started at once, then after pauses that double to 5 s") {
  RestartPolicy policy;
  std::vector<long> pauses;
  for (int life = 0; life < 8; ++life) {
    pauses.push_back(policy.after(milliseconds(50), Life::kUp).value().count());
  }
  CHECK(pauses == std::vector<long>{0, 250, 500, 1000, 2000, 4000, 5000, 5000});
}

TEST_CASE("a good life starts over") {
  RestartPolicy policy;
  for (int life = 0; life < 4; ++life) REQUIRE(policy.after(milliseconds(50), Life::kUp));
  CHECK(policy.after(milliseconds(10'000), Life::kUp) == milliseconds(0));
  CHECK(policy.after(milliseconds(50), Life::kUp) == milliseconds(250));
}

TEST_CASE("five lives are enough where none has ever come up") {
  RestartPolicy policy;
  for (int life = 0; life < 4; ++life) REQUIRE(policy.after(milliseconds(1), Life::kSilent));
  CHECK_FALSE(policy.was_up());
  CHECK_FALSE(policy.after(milliseconds(1), Life::kSilent));
}

TEST_CASE("a mount that was served waits ten minutes for the next daemon that comes up") {
  RestartPolicy policy;
  REQUIRE(policy.after(milliseconds(1), Life::kUp));
  CHECK(policy.was_up());
  for (const milliseconds length : {milliseconds(50), milliseconds(120'000)}) {
    CAPTURE(length.count());
    milliseconds silence(0);
    while (const auto pause = policy.after(length, Life::kSilent)) silence += length + *pause;
    CHECK(silence + length >= RestartPolicy::kLongestSilence);
    CHECK(silence <= RestartPolicy::kLongestSilence + RestartPolicy::kLongestPause);
    REQUIRE(policy.after(milliseconds(1), Life::kUp));  // starts over
  }
}

TEST_CASE("a long life without coming up is not a good one") {
  RestartPolicy policy;
  for (int life = 0; life < 8; ++life) REQUIRE(policy.after(milliseconds(50), Life::kUp));
  CHECK(policy.after(milliseconds(60'000), Life::kSilent) == RestartPolicy::kLongestPause);
}

}  // namespace
}  // namespace weightfs::keeper
