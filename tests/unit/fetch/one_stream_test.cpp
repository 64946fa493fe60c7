// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors

// FillLedger where the source sends whole files, whatever is asked for.

#include "ledger_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

namespace weightfs::fetch {
namespace {

using namespace std::chrono_literals;
using TimePoint = FillLedger::TimePoint;

constexpr auto kFile = static_cast<std::size_t>(Urgency::kFile);

TEST_CASE("a source without ranges is read to the end of the file by one part at a time") {
  FillLedger books = remote_ledger();
  REQUIRE(books.join());
  books.park(read(1, {0, 100}), kStart);
  const auto first = books.next_part(Urgency::kDemand, kStart);
  REQUIRE(first);
  books.use_one_stream(kStart);
  CHECK_FALSE(books.next_part(Urgency::kFile, kStart));
  deliver(books, *first);
  CHECK(books.work(kStart)[kFile]);
  const auto rest = books.next_part(Urgency::kFile, kStart);
  REQUIRE(rest);
  CHECK(rest->range == ByteRange{kBlock, 100 * kMiB});
  books.park(read(2, {99 * kMiB, 99 * kMiB + 1}), kStart);
  CHECK_FALSE(books.next_part(Urgency::kDemand, kStart));
}

TEST_CASE("a source without ranges is left alone when nobody wants anything, and when it is over") {
  FillLedger books = remote_ledger();
  REQUIRE(books.join());
  books.park(read(1, {0, 100}), kStart);
  const auto first = books.next_part(Urgency::kDemand, kStart);
  REQUIRE(first);
  REQUIRE(books.cancel(1));
  books.leave();
  books.use_one_stream(kStart);
  CHECK(books.progress().want == Want::kDemand);  // nobody reads it who could want the file
  CHECK_FALSE(books.accepts(*first));
  books.part_ended(*first, kBlock / 2, nullptr, kStart);
  CHECK_FALSE(books.next_part(Urgency::kDemand, kStart));
  REQUIRE(books.join());
  CHECK_FALSE(books.next_part(Urgency::kDemand, kStart));  // an open is no read
  books.park(read(2, {0, 100}), kStart);
  const auto rest = books.next_part(Urgency::kDemand, kStart);
  REQUIRE(rest);
  CHECK(rest->range == ByteRange{kBlock / 2, 100 * kMiB});
  CHECK(books.accepts(*rest));
  // The reader has what it wanted; the rest is wanted as long as it holds the file.
  CHECK(books.received(*rest, {kBlock / 2, kBlock}, {0, kBlock}, nullptr, kStart).size() == 1);
  CHECK(books.accepts(*rest));
  books.leave();
  CHECK_FALSE(books.accepts(*rest));
  books.part_ended(*rest, kBlock, nullptr, kStart);
  CHECK(books.close_if_idle());
  CHECK_FALSE(books.next_part(Urgency::kDemand, kStart));
}

TEST_CASE("of the parts of a file that is sent whole, only the first goes on") {
  FillLedger books = remote_ledger();
  REQUIRE(books.join());
  books.park(read(1, {8 * kMiB, 8 * kMiB + 1}), kStart);
  const auto later = books.next_part(Urgency::kDemand, kStart);
  books.park(read(2, {kMiB, kMiB + 1}), kStart);
  const auto earlier = books.next_part(Urgency::kDemand, kStart);
  REQUIRE(later);
  REQUIRE(earlier);
  books.use_one_stream(kStart);
  CHECK(books.accepts(*earlier));
  CHECK_FALSE(books.accepts(*later));
  books.part_ended(*later, later->range.begin, nullptr, kStart);
  CHECK_FALSE(books.next_part(Urgency::kDemand, kStart));
  // A server can be replaced by one that knows better.
  books.use_ranges();
  CHECK(books.next_part(Urgency::kDemand, kStart)->range.begin == 8 * kMiB);
}

TEST_CASE("bytes on the way to a part put the deadline off, and a second try has all the time") {
  FetcherOptions options;
  options.deadline = 10s;
  FillLedger books = remote_ledger(options);
  REQUIRE(books.join());
  books.park(read(1, {90 * kMiB, 90 * kMiB + 1}), kStart);
  auto part = books.next_part(Urgency::kDemand, kStart);
  REQUIRE(part);
  books.use_one_stream(kStart);
  TimePoint now = kStart;
  const auto skip_on_for = [&](std::chrono::seconds time) {
    for (const TimePoint end = now + time; now < end; now += 1s) {
      books.skipped(*part, now);
      CHECK_FALSE(books.tick(now).timed_out);
    }
  };
  skip_on_for(60s);
  const TransientError reset(Errc::kUnavailable, "reset");
  books.part_ended(*part, part->range.begin, &reset, now);
  now += 5s;
  CHECK_FALSE(books.tick(now).timed_out);
  part = books.next_part(Urgency::kDemand, now);
  REQUIRE(part);
  skip_on_for(60s);
  // It broke again before anything came of it: there is no end to that.
  books.part_ended(*part, part->range.begin, &reset, now);
  CHECK(books.tick(now).timed_out);
}

}  // namespace
}  // namespace weightfs::fetch
