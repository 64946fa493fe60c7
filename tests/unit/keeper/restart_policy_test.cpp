// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "keeper/restart_policy.hpp"

#include <catch2/catch_test_macros.hpp>

#include <vector>

namespace weightfs::keeper {
namespace {

using std::chrono::milliseconds;
using Hello = RestartPolicy::Hello;

TEST_CASE("a daemon that dies soon is started at once, then after pauses that double to 5 s") {
  RestartPolicy policy;
  std::vector<long> pauses;
  for (int life = 0; life < 8; ++life) {
    pauses.push_back(policy.after(milliseconds(50), Hello::kSaid).value().count());
  }
  CHECK(pauses == std::vector<long>{0, 250, 500, 1000, 2000, 4000, 5000, 5000});
}

TEST_CASE("a good life starts over") {
  RestartPolicy policy;
  for (int life = 0; life < 4; ++life) REQUIRE(policy.after(milliseconds(50), Hello::kSaid));
  CHECK(policy.after(milliseconds(10'000), Hello::kSaid) == milliseconds(0));
  CHECK(policy.after(milliseconds(50), Hello::kSaid) == milliseconds(250));
}

TEST_CASE("five lives in a row without hello are enough") {
  RestartPolicy policy;
  for (int life = 0; life < 4; ++life) REQUIRE(policy.after(milliseconds(1), Hello::kSilent));
  REQUIRE(policy.after(milliseconds(1), Hello::kSaid));
  for (int life = 0; life < 4; ++life) REQUIRE(policy.after(milliseconds(1), Hello::kSilent));
  CHECK_FALSE(policy.after(milliseconds(1), Hello::kSilent));
}

}  // namespace
}  // namespace weightfs::keeper
