// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cache/limits.hpp"

#include "base/error.hpp"

#include <catch2/catch_test_macros.hpp>

namespace weightfs::cache {
namespace {

store::StoreUsage usage(std::uint64_t ours, std::uint64_t free) {
  return {.bytes = ours, .capacity = 1000, .free = free};
}

TEST_CASE("shares read as sizes or as percent, and are written the same") {
  CHECK(parse_share("90%") == Share{.percent = 90});
  CHECK(parse_share("0%") == Share{});
  CHECK(parse_share("1GiB") == Share{.bytes = 1 << 30});
  CHECK(exact_share(parse_share("90%")) == "90%");
  CHECK(exact_share(parse_share("10MiB")) == "10MiB");
  for (const char* bad : {"%", "101%", "1.5%", "-1%", "5 %", "x", "", "5%%"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_share(bad), Error);
  }
  CHECK(Share{.percent = 90}.of(1000) == 900);
  CHECK(Share{.percent = 33}.of(10) == 3);
  CHECK(Share{.percent = 100}.of(~0ULL) == ~0ULL);
}

TEST_CASE("the capacity counts while the disk is ours") {
  const Limits limits{.capacity = {.percent = 50}, .min_free = {.percent = 5}};
  const policy::Budget found = budget(limits, usage(200, 800));
  CHECK(found.capacity == 500);
  CHECK(found.used == 200);
  CHECK(found.probation == 100);
}

TEST_CASE("what others take from the disk is not ours") {
  const Limits limits{.capacity = {.percent = 90}, .min_free = {.percent = 10}};
  CHECK(budget(limits, usage(200, 300)).capacity == 400);  // 300 free, of which 100 are to stay
  CHECK(budget(limits, usage(200, 50)).capacity == 150);   // 50 of ours have to go
  CHECK(budget(limits, usage(20, 10)).capacity == 0);      // and that is not even enough
}

TEST_CASE("what is on its way, and what is evicted but open, is in use") {
  store::StoreUsage busy = usage(100, 500);
  busy.partial_bytes = 30;
  busy.evicted_open_bytes = 7;
  CHECK(budget({}, busy).used == 137);
}

TEST_CASE("a capacity above the disk is the disk") {
  const Limits limits{.capacity = {.bytes = 5000}, .min_free = {}, .probation = {.bytes = 9000}};
  const policy::Budget found = budget(limits, usage(0, 1000));
  CHECK(found.capacity == 1000);
  CHECK(found.probation == 1000);
}

}  // namespace
}  // namespace weightfs::cache
