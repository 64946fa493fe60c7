// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/error.hpp"
#include "governor_node.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <chrono>

namespace weightfs::cache {
namespace {

using Catch::Matchers::ContainsSubstring;
using policy::Admission;

TEST_CASE("what is leased stays until the lease is over, and is admitted at once") {
  Node node(100 * kKiB, Admission::kNever);
  const auto leased = node.model("leased", 60 * kKiB);
  const auto more = node.model("more", 60 * kKiB);
  node.lease("job", {leased}, std::chrono::seconds(60));
  REQUIRE(node.use(leased, "x"));
  CHECK_THROWS_AS(node.governor().admit(more), Error);
  CHECK_FALSE(node.use(more, "x"));
  node.start();
  CHECK_THROWS_WITH(node.governor().admit(more), ContainsSubstring("leased"));
  node.advance(std::chrono::seconds(60));
  node.governor().admit(more);
  CHECK(node.use(more, "x"));
  CHECK_FALSE(node.has(leased));
}

TEST_CASE("what is promised to leases and pins is not promised twice") {
  Node node(100 * kKiB);
  const auto first = node.model("first", 60 * kKiB);
  const auto second = node.model("second", 30 * kKiB);
  const auto third = node.model("third", 20 * kKiB);
  node.governor().reserve({first});
  node.lease("job", {first}, std::chrono::seconds(60));  // nothing of it is there yet
  node.governor().reserve({first});                      // renewed
  node.governor().reserve({second});
  CHECK_THROWS_WITH(node.governor().reserve({second, third}),
                    ContainsSubstring("51.2 kB beside 61.4 kB that pins and leases"));
  // For a moment it may take the room: it goes when the lease needs it.
  node.governor().admit(third);
  node.advance(std::chrono::seconds(60));
  node.governor().reserve({second, third});
}

TEST_CASE("content that several reserved snapshots have takes its space once") {
  Node node(100 * kKiB);
  const auto a = node.model("a", {{.seed = 901, .size = 60 * kKiB}, {.seed = 902, .size = kKiB}});
  const auto b = node.model("b", {{.seed = 901, .size = 60 * kKiB}, {.seed = 903, .size = kKiB}});
  node.governor().reserve({a, b});
}

TEST_CASE("a pin that is over guards nothing") {
  Node node(100 * kKiB);
  const auto pinned = node.model("pinned", 60 * kKiB);
  const auto more = node.model("more", 60 * kKiB);
  REQUIRE(node.use(pinned, "x"));
  node.catalog().pin("pinned", {.reason = "", .owner = "", .until = 1'700'000'060});
  CHECK_FALSE(node.use(more, "x"));
  node.advance(std::chrono::seconds(60));
  CHECK(node.use(more, "x"));
  CHECK_FALSE(node.has(pinned));
}

}  // namespace
}  // namespace weightfs::cache
