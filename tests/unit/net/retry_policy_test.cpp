// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "net/retry_policy.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using weightfs::net::parse_retry_after;
using weightfs::net::retry_delay;

TEST_CASE("a retry waits between half and the whole of its exponential step") {
  struct Row {
    std::string name;
    unsigned attempt;
    std::optional<milliseconds> retry_after;
    milliseconds least;
    milliseconds most;
  };
  const std::vector<Row> rows = {
      {"the first retry", 1, {}, 100ms, 200ms},
      {"the second doubles", 2, {}, 200ms, 400ms},
      {"the fifth", 5, {}, 1'600ms, 3'200ms},
      {"the cap", 7, {}, 4'000ms, 8'000ms},
      {"far beyond the cap", 4'000'000'000, {}, 4'000ms, 8'000ms},
      {"no attempt counts as the first", 0, {}, 100ms, 200ms},
      {"the server's wish is a floor", 1, 5'000ms, 5'000ms, 5'100ms},
      {"jitter goes above the wish", 3, 5'000ms, 5'000ms, 5'400ms},
      {"a wish below the backoff does not shorten it", 7, 10ms, 4'000ms, 8'000ms},
      {"a wish of nothing", 1, 0ms, 100ms, 200ms},
      {"an absurd wish is cut", 1, 24h * 365, 60'000ms, 60'100ms},
      {"a negative wish is none", 1, -5'000ms, 100ms, 200ms},
  };
  std::mt19937_64 random(1);
  for (const Row& row : rows) {
    INFO(row.name);
    for (int i = 0; i < 200; ++i) {
      const milliseconds delay = retry_delay({}, row.attempt, row.retry_after, random);
      REQUIRE(delay >= row.least);
      REQUIRE(delay <= row.most);
    }
  }
}

TEST_CASE("retries of two replicas do not come together") {
  std::mt19937_64 one(1);
  std::mt19937_64 two(2);
  int same = 0;
  for (int i = 0; i < 100; ++i) {
    same += retry_delay({}, 7, {}, one) == retry_delay({}, 7, {}, two) ? 1 : 0;
  }
  CHECK(same < 10);
}

TEST_CASE("Retry-After is a number of seconds or a date") {
  // Sun, 06 Nov 1994 08:49:37 GMT
  const std::chrono::system_clock::time_point now{784'111'777s};
  struct Row {
    std::string name;
    std::string value;
    std::optional<milliseconds> expected;
  };
  const std::vector<Row> rows = {
      {"seconds", "120", 120s},
      {"zero", "0", 0s},
      {"surrounded by blanks", " 7 ", 7s},
      {"more than any clock holds", "99999999999999999999999", 24h * 365},
      {"a negative number is neither", "-1", {}},
      {"a fraction is neither", "1.5", {}},
      {"a date ahead", "Sun, 06 Nov 1994 08:50:37 GMT", 60s},
      {"a date behind", "Sun, 06 Nov 1994 08:48:37 GMT", 0s},
      {"the old date form", "Sunday, 06-Nov-94 08:50:37 GMT", 60s},
      {"the C date form", "Sun Nov  6 08:50:37 1994", 60s},
      {"a date without a zone", "Sun, 06 Nov 1994 08:49:37", {}},
      {"a day that is none", "Sun, 31 Feb 1994 08:49:37 GMT", {}},
      {"an hour that is none", "Sun, 06 Nov 1994 25:49:37 GMT", {}},
      {"words", "soon", {}},
      {"nothing", "", {}},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    CHECK(parse_retry_after(row.value, now) == row.expected);
  }
}
