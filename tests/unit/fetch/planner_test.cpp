// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/planner.hpp"

#include "store/partial_blob.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <random>

namespace weightfs::fetch {
namespace {

constexpr std::uint64_t kBlock = store::kBlockSize;
constexpr std::uint64_t kMiB = 1 << 20;
constexpr ByteRange kNothing{};

Planner planner(std::uint64_t size, unsigned connections = 1) {
  return {{.size = size, .part_size = 8 * kMiB, .connections = connections}, {}};
}

using Ranges = std::vector<ByteRange>;

TEST_CASE("a demand is fetched block by block and no further") {
  Planner plan = planner(100 * kMiB);
  const Ranges demand{{3 * kBlock + 5, 4 * kBlock + 1}};
  CHECK(plan.take_demand(demand, kNothing) == ByteRange{3 * kBlock, 5 * kBlock});
  CHECK_FALSE(plan.take_demand(demand, kNothing));
}

TEST_CASE("a run is all that is missing from the lowest block on, whatever the size of a part") {
  Planner plan = planner(100 * kMiB);
  plan.set_written({0, kMiB});
  plan.set_written({50 * kMiB, 51 * kMiB});
  CHECK(plan.take_run() == ByteRange{kMiB, 50 * kMiB});
  CHECK(plan.take_run() == ByteRange{51 * kMiB, 100 * kMiB});
  CHECK_FALSE(plan.take_run());
}

TEST_CASE("demands are served in their order, the first missing bytes first") {
  Planner plan = planner(100 * kMiB);
  const Ranges demand{{50 * kBlock, 51 * kBlock}, {10 * kBlock, 11 * kBlock}};
  CHECK(plan.take_demand(demand, kNothing) == ByteRange{50 * kBlock, 51 * kBlock});
  CHECK(plan.take_demand(demand, kNothing) == ByteRange{10 * kBlock, 11 * kBlock});
}

TEST_CASE("a demand goes on into what is wanted anyway, up to a part") {
  Planner plan = planner(100 * kMiB);
  const Ranges demand{{kMiB, kMiB + 10}};
  CHECK(plan.take_demand(demand, {0, 100 * kMiB}) == ByteRange{kMiB, 9 * kMiB});
}

TEST_CASE("a demand larger than a part is cut into parts") {
  Planner plan = planner(100 * kMiB);
  const Ranges demand{{0, 20 * kMiB}};
  CHECK(plan.take_demand(demand, kNothing) == ByteRange{0, 8 * kMiB});
  CHECK(plan.take_demand(demand, kNothing) == ByteRange{8 * kMiB, 16 * kMiB});
  CHECK(plan.take_demand(demand, kNothing) == ByteRange{16 * kMiB, 20 * kMiB});
}

TEST_CASE("read-ahead takes the lowest missing bytes and ends at what is in flight or written") {
  Planner plan = planner(100 * kMiB);
  CHECK(plan.take_demand(Ranges{{2 * kMiB, 3 * kMiB}}, kNothing) == ByteRange{2 * kMiB, 3 * kMiB});
  plan.set_written({5 * kMiB, 6 * kMiB});
  CHECK(plan.take_ahead({0, 100 * kMiB}) == ByteRange{0, 2 * kMiB});
  CHECK(plan.take_ahead({0, 100 * kMiB}) == ByteRange{3 * kMiB, 5 * kMiB});
  CHECK(plan.take_ahead({0, 100 * kMiB}) == ByteRange{6 * kMiB, 14 * kMiB});
}

TEST_CASE("parts shrink towards the end of the file, so that all connections finish together") {
  Planner plan = planner(32 * kMiB, 4);
  std::vector<std::uint64_t> sizes;
  while (const auto part = plan.take_ahead({0, 32 * kMiB})) sizes.push_back(part->size());
  CHECK(sizes.front() == 8 * kMiB);
  CHECK(std::is_sorted(sizes.rbegin(), sizes.rend()));
  CHECK(sizes.back() <= kMiB);
}

TEST_CASE("the file's last block may be short") {
  Planner plan = planner(kBlock + 1);
  CHECK(plan.take_ahead({0, kBlock + 1}) == ByteRange{0, kBlock + 1});
  plan.set_written({0, kBlock + 1});
  CHECK(plan.complete());
  CHECK(plan.frontier() == kBlock + 1);
}

TEST_CASE("an empty file is complete") {
  Planner plan = planner(0);
  CHECK(plan.complete());
  CHECK_FALSE(plan.take_ahead({0, 0}));
}

TEST_CASE("an interrupted part is resumed behind the byte where it ended") {
  Planner plan = planner(10 * kMiB);
  const auto part = plan.take_ahead({0, 10 * kMiB});
  REQUIRE(part == ByteRange{0, 8 * kMiB});
  plan.set_written({0, kBlock + 100});
  plan.give_back({kBlock + 100, part->end});
  CHECK(plan.frontier() == kBlock);
  CHECK(plan.take_ahead({0, 10 * kMiB}) == ByteRange{kBlock + 100, kBlock + 100 + 8 * kMiB - 100});
}

TEST_CASE("a part ends before a block that was begun, so that no byte of it comes twice") {
  Planner plan = planner(10 * kMiB);
  const auto part = plan.take_demand(Ranges{{2 * kBlock, 3 * kBlock}}, kNothing);
  plan.give_back({2 * kBlock + 7, part->end});
  CHECK(plan.take_ahead({0, 10 * kMiB}) == ByteRange{0, 2 * kBlock});
  CHECK(plan.take_ahead({0, 10 * kMiB})->begin == 2 * kBlock + 7);
}

TEST_CASE("what was forgotten is missing again") {
  Planner plan = planner(kMiB);
  plan.set_written({0, kMiB});
  plan.forget({kBlock, 2 * kBlock});
  CHECK_FALSE(plan.is_written({0, kMiB}));
  CHECK(plan.written_bytes() == kMiB - kBlock);
  CHECK(plan.frontier() == kBlock);
  CHECK(plan.take_ahead({0, kMiB}) == ByteRange{kBlock, 2 * kBlock});
}

TEST_CASE("resumed blocks are not asked for again") {
  std::vector<bool> written(16, true);
  written[3] = false;
  Planner plan({.size = kMiB, .part_size = kMiB, .connections = 1}, written);
  CHECK(plan.written_bytes() == kMiB - kBlock);
  CHECK(plan.take_ahead({0, kMiB}) == ByteRange{3 * kBlock, 4 * kBlock});
  CHECK_FALSE(plan.take_ahead({0, kMiB}));
}

/// A source that may fail anywhere: whatever happens, each byte arrives exactly once.
TEST_CASE("over random demands and failures every byte is planned exactly once") {
  std::mt19937_64 random(20240607);
  const auto pick = [&](std::uint64_t below) { return random() % below; };
  for (int round = 0; round < 60; ++round) {
    const std::uint64_t size = 1 + pick(40 * kMiB);
    Planner plan({.size = size,
                  .part_size = kBlock * (1 + pick(64)),
                  .connections = static_cast<unsigned>(1 + pick(8))},
                 {});
    std::vector<int> arrivals(size / 4096 + 1, 0);  // sampled: first byte of each page
    std::vector<ByteRange> running;
    while (!plan.complete()) {
      const std::uint64_t at = pick(size);
      const Ranges demand{{at, std::min(size, at + 1 + pick(kMiB))}};
      const ByteRange ahead = pick(2) ? ByteRange{0, size} : kNothing;
      auto part = plan.take_demand(demand, ahead);
      if (part && !demand[0].intersect(*part).empty()) {
        // Demand first: a part that was asked for begins with bytes that somebody waits for.
        CHECK(part->begin < demand[0].end);
      }
      if (!part && pick(3) == 0) part = plan.take_ahead({0, size});
      if (part) {
        for (const ByteRange& other : running) REQUIRE(part->intersect(other).empty());
        REQUIRE(part->end <= size);
        REQUIRE((part->end % kBlock == 0 || part->end == size));
        running.push_back(*part);
      }
      if (running.empty() || (running.size() < 6 && pick(2))) continue;
      const std::size_t which = pick(running.size());
      const ByteRange done = running[which];
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(which));
      const std::uint64_t end = pick(4) ? done.end : done.begin + pick(done.size());
      for (std::uint64_t page = (done.begin + 4095) / 4096; page * 4096 < end; ++page) {
        ++arrivals[page];
      }
      plan.set_written({done.begin / kBlock * kBlock, end});
      if (end < done.end) plan.give_back({end, done.end});
    }
    CHECK(plan.frontier() == size);
    CHECK(plan.written_bytes() == size);
    CHECK_FALSE(plan.take_ahead({0, size}));
    arrivals.resize((size + 4095) / 4096);
    CHECK(std::all_of(arrivals.begin(), arrivals.end(), [](int count) { return count == 1; }));
  }
}

TEST_CASE("only blocks that lie entirely within a range are whole") {
  CHECK(whole_blocks({1, 3 * kBlock + 5}, 10 * kBlock) == ByteRange{kBlock, 3 * kBlock});
  CHECK(whole_blocks({0, 5}, 10 * kBlock).empty());
  CHECK(whole_blocks({0, 5}, 5) == ByteRange{0, 5});
}

}  // namespace
}  // namespace weightfs::fetch
