// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/rate_table.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace std::chrono_literals;
using weightfs::Clock;
using weightfs::Digest;
using weightfs::control::RateTable;

TEST_CASE("a rate is what came between the last two samples") {
  const Digest a = Digest::of("a");
  const Digest b = Digest::of("b");
  const Clock::TimePoint start{};
  RateTable rates;
  CHECK(rates.rate(a) == 0);
  rates.update(start, {{a, 1000}});
  CHECK(rates.rate(a) == 0);
  rates.update(start + 2s, {{a, 5000}, {b, 7}});
  CHECK(rates.rate(a) == 2000);
  CHECK(rates.rate(b) == 0);
  rates.update(start + 3s, {{b, 7}});
  CHECK(rates.rate(a) == 0);  // forgotten
  CHECK(rates.rate(b) == 0);
  rates.update(start + 3s, {{b, 9}});  // no time has passed
  CHECK(rates.rate(b) == 0);
  rates.update(start + 4s, {{b, 3}});  // another fill of the same content
  CHECK(rates.rate(b) == 0);
}
