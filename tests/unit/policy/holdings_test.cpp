// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "policy/holdings.hpp"

#include "snapshots.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <random>
#include <vector>

using namespace weightfs;
using namespace weightfs::policy;
using weightfs::tests::snapshot;

namespace {

std::vector<Holding> all(const Holdings& holdings, Area area) {
  std::vector<Holding> list;
  holdings.walk(area, [&](const Holding& holding) {
    list.push_back(holding);
    return true;
  });
  return list;
}

}  // namespace

TEST_CASE("holdings stand in the order of their last use, each in its area") {
  Holdings holdings;
  holdings.use(snapshot(1), Area::kResident, 10);
  holdings.use(snapshot(2), Area::kProbation, 11);
  holdings.use(snapshot(3), Area::kResident, 12);
  holdings.use(snapshot(1), Area::kResident, 13);
  holdings.set_bytes(snapshot(1), 100);
  holdings.set_bytes(snapshot(2), 20);
  holdings.set_bytes(snapshot(9), 5);

  CHECK(all(holdings, Area::kResident) ==
        std::vector<Holding>{{snapshot(3), Area::kResident, 0, 12},
                             {snapshot(1), Area::kResident, 100, 13}});
  CHECK(all(holdings, Area::kProbation) ==
        std::vector<Holding>{{snapshot(2), Area::kProbation, 20, 11}});
  CHECK(holdings.bytes(Area::kResident) == 100);
  CHECK(holdings.bytes(Area::kProbation) == 20);
  CHECK(holdings.count() == 3);
}

TEST_CASE("the area of a holding only goes up, and its bytes with it") {
  Holdings holdings;
  holdings.use(snapshot(1), Area::kProbation, 1);
  holdings.set_bytes(snapshot(1), 7);
  holdings.use(snapshot(1), Area::kResident, 2);
  holdings.use(snapshot(1), Area::kProbation, 3);
  CHECK(holdings.find(snapshot(1))->area == Area::kResident);
  CHECK(holdings.bytes(Area::kProbation) == 0);
  CHECK(holdings.bytes(Area::kResident) == 7);
}

TEST_CASE("what was dropped is gone, even when its own holding names it") {
  Holdings holdings;
  holdings.use(snapshot(1), Area::kResident, 1);
  holdings.set_bytes(snapshot(1), 7);
  holdings.drop(holdings.find(snapshot(1))->snapshot);
  holdings.drop(snapshot(1));
  CHECK(holdings.find(snapshot(1)) == nullptr);
  CHECK(holdings.bytes(Area::kResident) == 0);
  CHECK(holdings.count() == 0);
}

TEST_CASE("a walk ends when its visitor has enough") {
  Holdings holdings;
  for (int i = 0; i < 5; ++i) holdings.use(snapshot(i), Area::kResident, i);
  int visited = 0;
  holdings.walk(Area::kResident, [&](const Holding&) { return ++visited < 2; });
  CHECK(visited == 2);
}

TEST_CASE("holdings agree with a naive model") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    Holdings holdings;
    std::vector<Holding> naive;  // least recently used first, both areas
    for (int step = 0; step < 400; ++step) {
      CAPTURE(seed, step);
      const Digest which = snapshot(static_cast<int>(random() % 16));
      const auto found = std::ranges::find(naive, which, &Holding::snapshot);
      switch (random() % 5) {
        case 0:
          holdings.drop(which);
          if (found != naive.end()) naive.erase(found);
          break;
        case 1: {
          const std::uint64_t bytes = random() % 1000;
          holdings.set_bytes(which, bytes);
          if (found != naive.end()) found->bytes = bytes;
          break;
        }
        default: {
          const Area area = random() % 2 == 0 ? Area::kProbation : Area::kResident;
          holdings.use(which, area, step);
          Holding holding{which, area, 0, step};
          if (found != naive.end()) {
            holding = {which, std::max(area, found->area), found->bytes, step};
            naive.erase(found);
          }
          naive.push_back(holding);
        }
      }
      REQUIRE(holdings.count() == naive.size());
      for (const Area area : {Area::kProbation, Area::kResident}) {
        std::vector<Holding> expected;
        std::uint64_t bytes = 0;
        for (const Holding& holding : naive) {
          if (holding.area != area) continue;
          expected.push_back(holding);
          bytes += holding.bytes;
        }
        REQUIRE(all(holdings, area) == expected);
        REQUIRE(holdings.bytes(area) == bytes);
      }
    }
  }
}
