// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors

// Fills that may not go as fast as they can.

#include "fetch/rate_limiter.hpp"
#include "fetch_fixture.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

namespace weightfs::fetch {
namespace {

using namespace std::chrono_literals;
using Seconds = std::chrono::duration<double>;

/// How long it takes until all of it is in the store.
Seconds time_of(FetchFixture& fixture, const FillPtr& fill) {
  const auto begin = std::chrono::steady_clock::now();
  fill->want(Want::kFile);
  REQUIRE(eventually([&] { return fill->progress().state == FillState::kComplete; }));
  (void)fixture;
  return std::chrono::steady_clock::now() - begin;
}

TEST_CASE_METHOD(FetchFixture, "so many bytes take as long as fill_bandwidth says") {
  options.fill_bandwidth = 4 * kMiB;
  options.part_size = 256 * kKiB;
  start();
  const Seconds time = time_of(*this, fill("a", 6 * kMiB));
  CHECK(time >= 1.35s);
  CHECK(time <= 3s);  // 1.5 s, on a machine that does nothing else
  CHECK(fetcher().counters().source_limit.waited >= 1s);
  CHECK(fetcher().counters().disk_limit.waited == 0s);
}

TEST_CASE_METHOD(FetchFixture, "so many bytes take as long as write_bandwidth says") {
  options.write_bandwidth = 4 * kMiB;
  start();
  CHECK(time_of(*this, fill("a", 6 * kMiB)) >= 1.35s);
  CHECK(fetcher().counters().disk_limit.waited >= 1s);
  CHECK(fetcher().counters().source_limit.waited == 0s);
}

TEST_CASE_METHOD(FetchFixture, "what is streamed past the disk is not written") {
  options.write_bandwidth = 1;
  options.keep = Keep::kMemoryOnly;
  start();
  CHECK(reads_right(fill("a", 6 * kMiB), {0, 2 * kMiB}));
  CHECK(fetcher().counters().disk_limit.waited == 0s);
}

TEST_CASE_METHOD(FetchFixture, "what comes before a range and is dropped counts as fetched") {
  options.fill_bandwidth = 4 * kMiB;
  source->sends_ranges = false;
  start();
  const FillPtr fill = this->fill("a", 4 * kMiB);
  const auto begin = std::chrono::steady_clock::now();
  CHECK(reads_right(fill, {3 * kMiB, 3 * kMiB + 10}));
  CHECK(std::chrono::steady_clock::now() - begin >= 650ms);
}

TEST_CASE_METHOD(FetchFixture, "a reader goes before what is fetched ahead, in any file") {
  options.fill_bandwidth = kMiB;
  start();
  const FillPtr first = fill("first", 100 * kMiB);
  const FillPtr second = fill("second", 100 * kMiB);
  const FillPtr third = fill("third", 100 * kMiB);
  first->want(Want::kBackground);
  second->want(Want::kFile);
  REQUIRE(eventually([&] { return fetcher().counters().source_bytes > 256 * kKiB; }));
  const auto begin = fetcher().counters().source_bytes;
  CHECK(reads_right(first, {80 * kMiB, 80 * kMiB + 64 * kKiB}));
  CHECK(reads_right(third, {5 * kMiB, 5 * kMiB + 64 * kKiB}));
  // Beside these 128 KiB the others have had what passed while a read had no connection yet.
  CHECK(fetcher().counters().source_bytes - begin <= 512 * kKiB);
}

TEST_CASE_METHOD(FetchFixture, "a reader of what is on its way already is not behind the rest") {
  options.fill_bandwidth = kMiB;
  options.part_size = 8 * kMiB;
  options.connections = options.connections_per_blob = 16;
  start();
  const FillPtr fill = this->fill("a", 100 * kMiB);
  fill->want(Want::kBackground);
  REQUIRE(eventually([&] { return fill->progress().connections >= 12; }));
  const auto begin = fetcher().counters().source_bytes;
  CHECK(reads_right(fill, {16 * kMiB, 16 * kMiB + 64 * kKiB}));
  CHECK(fetcher().counters().source_bytes - begin <= 768 * kKiB);
}

TEST_CASE_METHOD(FetchFixture, "a reader gets a connection of those that wait for their turn") {
  options.fill_bandwidth = 256 * kKiB;
  options.connections = GENERATE(1U, 3U);
  options.connections_per_blob = 2;
  CAPTURE(options.connections);
  start();
  const FillPtr one = fill("one", 100 * kMiB);
  const FillPtr two = fill("two", 100 * kMiB);
  one->want(Want::kFile);
  two->want(Want::kBackground);
  REQUIRE(eventually([&] { return source->most_at_once() == options.connections; }));
  CHECK(reads_right(one, {50 * kMiB, 50 * kMiB + 10}));
  CHECK(reads_right(fill("three", kMiB), {0, 10}));
  CHECK(source->most_at_once() <= options.connections);
  CHECK(fetcher().counters().source_bytes <= 4 * kMiB);
}

TEST_CASE_METHOD(FetchFixture, "a wait for the limit is neither a stall nor a timeout") {
  options.fill_bandwidth = 64 * kKiB;
  options.connections = options.connections_per_blob = 4;
  start();
  const FillPtr fill = this->fill("a", 100 * kMiB);
  fill->want(Want::kFile);
  REQUIRE(eventually([&] { return fill->progress().connections == 4; }));
  PendingRead read(fill, 0, 256 * kKiB);
  for (int i = 0; i < 20; ++i) {
    clock.advance(options.deadline / 4);
    const auto before = fill->progress().received;
    REQUIRE(eventually([&] { return fill->progress().received > before; }));
  }
  CHECK(read.wait() == FakeSource::content("a", {0, 256 * kKiB}));
  CHECK(fill->progress().state == FillState::kFilling);
  CHECK(fetcher().counters().retries == 0);
}

TEST_CASE_METHOD(FetchFixture, "a job's own pace holds up what nobody reads, and no reader") {
  options.part_size = 256 * kKiB;
  start();
  const auto pace = fetcher().make_pace(64 * kKiB);
  const FillPtr fill = this->fill("a", 20 * kMiB);
  fill->set_pace(pace);
  fill->want(Want::kBackground);
  REQUIRE(eventually([&] { return pace->waiting() > 0; }));
  CHECK(fetcher().counters().source_bytes <= kMiB);
  CHECK(reads_right(fill, {10 * kMiB, 15 * kMiB}));
  CHECK(fill->progress().written < 10 * kMiB);
  SECTION("until a reader wants all of it") {
    fill->want(Want::kFile);
  }
  SECTION("until it is lifted") {
    fill->set_pace(nullptr);
    pace->set_rate(0);
  }
  CHECK(eventually([&] { return fill->progress().state == FillState::kComplete; }));
}

TEST_CASE_METHOD(FetchFixture, "a fill that nobody holds any more does not wait for its turn") {
  options.fill_bandwidth = kKiB;
  start();
  {
    const FillPtr fill = this->fill("a", 100 * kMiB);
    fill->want(Want::kFile);
    REQUIRE(eventually([&] { return fill->progress().connections > 0; }));
  }
  CHECK(eventually([&] { return fetcher().fills().empty(); }));
}

TEST_CASE_METHOD(FetchFixture, "a fetcher that ends does not wait for a limit") {
  options.fill_bandwidth = options.write_bandwidth = 1;
  start();
  const FillPtr fill = this->fill("a", 100 * kMiB);
  PendingRead read(fill, 0, 10);
  REQUIRE(eventually([&] { return fill->progress().connections > 0; }));
  const auto begin = std::chrono::steady_clock::now();
  stop();
  CHECK(read.failure() == Errc::kCancelled);
  CHECK(std::chrono::steady_clock::now() - begin < kPatience / 2);
}

}  // namespace
}  // namespace weightfs::fetch
