// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/timestamp.hpp"

#include "base/error.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace weightfs;

TEST_CASE("a time of RFC 3339 is read with its zone, and shown in UTC") {
  CHECK(parse_timestamp("1970-01-01T00:00:00Z") == 0);
  CHECK(parse_timestamp("2026-03-01T12:00:00Z") == 1'772'366'400);
  CHECK(parse_timestamp("2026-03-01T13:00:00+01:00") == 1'772'366'400);
  CHECK(parse_timestamp("2026-03-01 05:00:00.75-0700") == 1'772'366'400);
  CHECK(parse_timestamp("1969-12-31T23:59:59Z") == -1);
  CHECK(show_timestamp(1'772'366'400) == "2026-03-01T12:00:00Z");
  CHECK(show_timestamp(0) == "1970-01-01T00:00:00Z");
  for (const std::int64_t seconds : {-1L, 951'782'400L, 4'102'444'799L}) {
    CHECK(parse_timestamp(show_timestamp(seconds)) == seconds);
  }
}

TEST_CASE("a date alone is the beginning of its day in UTC") {
  CHECK(parse_timestamp("2026-03-01") == 1'772'323'200);
}

TEST_CASE("what is no time, or leaves its zone open, is refused") {
  for (const char* bad :
       {"", "tomorrow", "2026-03-01T12:00:00", "2026-02-30", "2026-03-01T24:00:00Z",
        "2026-03-01T12:00Z", "2026-03-01T12:00:00+1", "2026-3-1", "2026-03-01T", "2026-03-01x",
        "+026-03-01", "1772366400", "2026-03-01T12:00:00Zz", "2026-03-01T12:00:00+99:99",
        "9999-12-31T23:59:59-23:59", "9999-12-31T23:59:59.9999Z", "0000-01-01T00:00:00+00:01"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_timestamp(bad), Error);
  }
  CHECK(read_date_and_time("2026-03-01T12:00:00", NoZone::kUtc) ==
        std::chrono::seconds{1'772'366'400});
}
