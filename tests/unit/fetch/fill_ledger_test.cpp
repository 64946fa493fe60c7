// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/fill_ledger.hpp"

#include "ledger_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

namespace weightfs::fetch {
namespace {

using namespace std::chrono_literals;
using TimePoint = FillLedger::TimePoint;

constexpr auto kDemand = static_cast<std::size_t>(Urgency::kDemand);
constexpr auto kFile = static_cast<std::size_t>(Urgency::kFile);
constexpr auto kBackground = static_cast<std::size_t>(Urgency::kBackground);

/// Takes the clone out of the way: there is none.
void skip_clone(FillLedger& books, Urgency urgency) {
  const auto part = books.next_part(urgency, kStart);
  REQUIRE(part);
  REQUIRE(part->kind == Part::Kind::kClone);
  CHECK(books.clone_ended(*part, FillLedger::Cloned::kNothing).empty());
}

TEST_CASE("nobody wants anything: there is no work") {
  FillLedger books = ledger();
  REQUIRE(books.join());
  CHECK(books.work(kStart) == std::array<bool, kUrgencies>{});
}

TEST_CASE("a parked read is work of the first urgency, until its bytes are under way") {
  FillLedger books = ledger();
  books.park(read(1, {0, 100}), kStart);
  CHECK(books.work(kStart)[kDemand]);
  const auto part = books.next_part(Urgency::kDemand, kStart);
  REQUIRE(part);
  CHECK(part->range == ByteRange{0, kBlock});
  CHECK_FALSE(books.work(kStart)[kDemand]);
  CHECK_FALSE(books.next_part(Urgency::kDemand, kStart));
  const auto ready = books.received(*part, {0, kBlock}, {0, kBlock}, nullptr, kStart);
  REQUIRE(ready.size() == 1);
  CHECK(ready[0].id == 1);
}

TEST_CASE("a clone runs alone: it would replace what parts have written and hashed") {
  FillLedger books = ledger();
  REQUIRE(books.join());
  books.park(read(1, {0, 1}), kStart);
  const auto part = books.next_part(Urgency::kDemand, kStart);
  REQUIRE(part);
  books.raise(Want::kFile, kStart);
  books.park(read(2, {kMiB, kMiB + 1}), kStart);
  CHECK(books.work(kStart) == std::array<bool, kUrgencies>{});
  CHECK_FALSE(books.next_part(Urgency::kFile, kStart));
  CHECK_FALSE(books.next_part(Urgency::kDemand, kStart));
  books.part_ended(*part, part->range.begin, nullptr, kStart);
  const auto clone = books.next_part(Urgency::kDemand, kStart);
  REQUIRE(clone);
  CHECK(clone->kind == Part::Kind::kClone);
  CHECK(books.work(kStart) == std::array<bool, kUrgencies>{});
  CHECK_FALSE(books.next_part(Urgency::kDemand, kStart));
  CHECK(books.clone_ended(*clone, FillLedger::Cloned::kWhole).size() == 2);
}

TEST_CASE("a clone never replaces bytes that may be of another version") {
  snapshot::File listed = file(100 * kMiB);
  std::vector<bool> written;
  bool clones = false;
  SECTION("there are none") {
    clones = true;
  }
  SECTION("they came with a digest, and nothing says of which version") {
    listed.sha256 = Digest::of("content");
  }
  SECTION("they came in this fill, compared with the validator") {
    listed.sha256 = Digest::of("content");
    listed.validator = "1";
    clones = true;
  }
  SECTION("they came in a fill that had another validator, perhaps") {
    listed.sha256 = Digest::of("content");
    listed.validator = "1";
    written = {false, true};
  }
  SECTION("they came in another fill, but the validator is part of the key") {
    listed.validator = "1";
    written = {false, true};
    clones = true;
  }
  const bool nothing_yet = clones && listed.validator.empty();
  FillLedger books(listed, {}, {.written = written, .local = true, .seed = 1});
  REQUIRE(books.join());
  if (!nothing_yet) {
    books.park(read(1, {0, 1}), kStart);
    deliver(books, *books.next_part(Urgency::kDemand, kStart));
  }
  books.raise(Want::kFile, kStart);
  const auto part = books.next_part(Urgency::kFile, kStart);
  REQUIRE(part);
  CHECK((part->kind == Part::Kind::kClone) == clones);
}

TEST_CASE("readers who looked on while a clone went wrong have what nobody can prove") {
  snapshot::File listed = file(100 * kMiB);
  listed.validator = "1";
  FillLedger books(listed, {}, {.written = {}, .local = true, .seed = 1});
  REQUIRE(books.join());
  books.park(read(1, {0, 1}), kStart);
  deliver(books, *books.next_part(Urgency::kDemand, kStart));
  CHECK_FALSE(books.unproven());
  books.raise(Want::kFile, kStart);
  const auto clone = books.next_part(Urgency::kFile, kStart);
  REQUIRE(clone);
  CHECK(books.clone_ended(*clone, FillLedger::Cloned::kSpoiled).empty());
  CHECK(books.disown());
  CHECK_FALSE(books.disown());
}

TEST_CASE("where the whole file is wanted, a clone is tried first and once") {
  FillLedger books = ledger();
  REQUIRE(books.join());
  books.raise(Want::kBackground, kStart);
  CHECK(books.work(kStart)[kBackground]);
  CHECK_FALSE(books.work(kStart)[kFile]);
  const auto clone = books.next_part(Urgency::kBackground, kStart);
  REQUIRE(clone);
  CHECK(clone->kind == Part::Kind::kClone);
  CHECK_FALSE(books.work(kStart)[kBackground]);
  CHECK_FALSE(books.next_part(Urgency::kBackground, kStart));
  books.park(read(1, {kMiB, kMiB + 1}), kStart);
  CHECK_FALSE(books.next_part(Urgency::kDemand, kStart));
  CHECK(books.clone_ended(*clone, FillLedger::Cloned::kNothing).empty());
  CHECK(books.next_part(Urgency::kDemand, kStart)->kind == Part::Kind::kRange);
  CHECK(books.next_part(Urgency::kBackground, kStart)->kind == Part::Kind::kRange);
}

TEST_CASE("a clone answers everybody and leaves only the hash to do") {
  FillLedger books = ledger();
  REQUIRE(books.join());
  books.raise(Want::kFile, kStart);
  const auto clone = books.next_part(Urgency::kFile, kStart);
  REQUIRE(clone);
  books.park(read(1, {5, 10}), kStart);
  CHECK(books.clone_ended(*clone, FillLedger::Cloned::kWhole).size() == 1);
  CHECK(books.work(kStart) == std::array<bool, kUrgencies>{});
  CHECK(books.hash_due());
  CHECK(books.progress().written == 100 * kMiB);
}

TEST_CASE("read-ahead ends with the last reader, and the next one begins anew") {
  FillLedger books = ledger();
  REQUIRE(books.join());
  books.raise(Want::kFile, kStart);
  skip_clone(books, Urgency::kFile);
  CHECK(books.work(kStart)[kFile]);
  books.leave();
  CHECK_FALSE(books.work(kStart)[kFile]);
  CHECK(books.idle());
  REQUIRE(books.join());
  CHECK_FALSE(books.idle());
  CHECK(books.progress().want == Want::kDemand);
}

TEST_CASE("only an idle fill closes, and then nobody joins it") {
  FillLedger books = ledger();
  REQUIRE(books.join());
  CHECK_FALSE(books.close_if_idle());
  books.park(read(1, {0, 1}), kStart);
  books.leave();
  CHECK_FALSE(books.close_if_idle());  // somebody waits
  const auto part = books.next_part(Urgency::kDemand, kStart);
  REQUIRE(books.cancel(1));
  CHECK_FALSE(books.close_if_idle());  // a part runs
  books.part_ended(*part, part->range.begin, nullptr, kStart);
  CHECK(books.close_if_idle());
  CHECK_FALSE(books.join());
}

TEST_CASE("the wait counts from when somebody wanted something, not from the last byte") {
  FetcherOptions options;
  options.deadline = 10s;
  FillLedger books = ledger(100 * kMiB, options);
  REQUIRE(books.join());
  CHECK_FALSE(books.tick(kStart + 1h).timed_out);
  books.park(read(1, {0, 1}), kStart + 1h);
  const TimePoint start = kStart + 1h + 15s;
  CHECK_FALSE(books.tick(start).timed_out);  // no connection yet: others have them all
  const auto part = books.next_part(Urgency::kDemand, start);
  REQUIRE(part);
  CHECK_FALSE(books.tick(start + 9s).timed_out);
  (void)books.received(*part, {0, 10}, {}, nullptr, start + 9s);
  CHECK_FALSE(books.tick(start + 18s).timed_out);
  CHECK(books.tick(start + 19s).timed_out);
}

TEST_CASE("a reader without a connection waits for one, but not for ever") {
  FetcherOptions options;
  options.deadline = 10s;
  FillLedger books = ledger(100 * kMiB, options);
  REQUIRE(books.join());
  books.raise(Want::kBackground, kStart);
  CHECK(books.tick(kStart + 1h).again);
  CHECK_FALSE(books.tick(kStart + 1h).timed_out);  // readers go first, however long
  books.park(read(1, {0, 1}), kStart + 1h);
  CHECK_FALSE(books.tick(kStart + 1h + 19s).timed_out);
  CHECK(books.tick(kStart + 1h + 20s).timed_out);
  CHECK(books.tick(kStart + 1h + 20s).starved);
}

TEST_CASE("whoever is kept out because the source holds on to its connections is told in the end") {
  FetcherOptions options;
  options.deadline = 10s;
  FillLedger books = ledger(100 * kMiB, options);
  REQUIRE(books.join());
  books.raise(Want::kBackground, kStart);
  books.keep_out(kStart + 1h);
  books.keep_out(kStart + 1h + 19s);
  CHECK_FALSE(books.tick(kStart + 1h + 19s).timed_out);
  CHECK(books.tick(kStart + 1h + 20s).starved);
  SECTION("unless it gets one") {
    REQUIRE(books.next_part(Urgency::kBackground, kStart + 1h + 19s));
    CHECK_FALSE(books.tick(kStart + 1h + 20s).timed_out);
  }
}

TEST_CASE("a part that hangs ends the fill although nobody waits for it any more") {
  FetcherOptions options;
  options.deadline = 10s;
  FillLedger books = ledger(100 * kMiB, options);
  REQUIRE(books.join());
  books.park(read(1, {0, 1}), kStart);
  REQUIRE(books.next_part(Urgency::kDemand, kStart));
  REQUIRE(books.cancel(1));
  books.leave();
  CHECK_FALSE(books.tick(kStart + 9s).timed_out);
  CHECK(books.tick(kStart + 10s).timed_out);
}

TEST_CASE("a part of which nothing comes is given up, and the rest of it is asked for again") {
  FetcherOptions options;
  options.stall_timeout = 30s;
  FillLedger books = ledger(100 * kMiB, options);
  REQUIRE(books.join());
  books.raise(Want::kFile, kStart);
  skip_clone(books, Urgency::kFile);
  const auto stuck = books.next_part(Urgency::kFile, kStart);
  const auto other = books.next_part(Urgency::kFile, kStart);
  REQUIRE(stuck);
  REQUIRE(other);
  const std::uint64_t came = stuck->range.begin + kBlock + 100;
  (void)books.received(*stuck, {stuck->range.begin, came}, {0, kBlock}, nullptr, kStart + 20s);
  CHECK(books.tick(kStart + 29s).stalled.empty());
  const auto deliver_other = [&](TimePoint now) {
    const ByteRange block = whole_blocks(other->range, 1ULL << 40);
    (void)books.received(*other, {block.begin, block.begin + 1}, {}, nullptr, now);
  };
  deliver_other(kStart + 29s);
  CHECK(books.tick(kStart + 49s).stalled.empty());  // its last byte was at 20 s
  const auto tick = books.tick(kStart + 50s);
  CHECK_FALSE(tick.timed_out);
  REQUIRE(tick.stalled.size() == 1);
  CHECK(tick.stalled[0].id == stuck->id);
  CHECK(books.progress().connections == 1);
  SECTION("behind the bytes that it brought, by another, once its delay is over") {
    deliver_other(kStart + 51s);
    (void)books.tick(kStart + 1min);
    const auto again = books.next_part(Urgency::kFile, kStart + 1min);
    REQUIRE(again);
    CHECK(again->range.begin == came);
    CHECK(again->range.end <= stuck->range.end);
    CHECK(books.accepts(*again));
    CHECK_FALSE(books.accepts(*stuck));
    // It comes back after all: its end says nothing about the part that took its place.
    const TransientError reset(Errc::kUnavailable, "reset");
    books.part_ended(*stuck, came, &reset, kStart + 1min);
    CHECK(books.progress().connections == 2);
    CHECK(books.accepts(*again));
    CHECK_FALSE(books.tick(kStart + 1min).timed_out);
  }
  SECTION("for as long as anybody wants it") {
    books.part_ended(*other, other->range.begin + 1, nullptr, kStart + 51s);
    books.leave();
    (void)books.tick(kStart + 1min);
    CHECK(books.close_if_idle());
  }
}

TEST_CASE("a clone whose original cannot be opened is given up, one that replaces bytes is not") {
  FetcherOptions options;
  options.stall_timeout = 30s;
  FillLedger books = ledger(100 * kMiB, options);
  REQUIRE(books.join());
  books.raise(Want::kFile, kStart);
  const auto clone = books.next_part(Urgency::kFile, kStart);
  REQUIRE(clone);
  REQUIRE(clone->kind == Part::Kind::kClone);
  SECTION("given up") {
    REQUIRE(books.tick(kStart + 30s).stalled.size() == 1);
    CHECK_FALSE(books.clone_replaces(*clone));
    REQUIRE(books.next_part(Urgency::kFile, kStart + 30s));
    CHECK(books.clone_ended(*clone, FillLedger::Cloned::kNothing).empty());
    CHECK(books.progress().connections == 1);
  }
  SECTION("not given up") {
    CHECK(books.clone_replaces(*clone));
    CHECK(books.tick(kStart + 30s).stalled.empty());
    CHECK_FALSE(books.next_part(Urgency::kFile, kStart + 30s));
  }
}

TEST_CASE("failing attempts do not put the deadline off") {
  FetcherOptions options;
  options.deadline = 10s;
  FillLedger books = ledger(100 * kMiB, options);
  REQUIRE(books.join());
  books.park(read(1, {0, 1}), kStart);
  const TransientError refused(Errc::kUnavailable, "refused");
  TimePoint now = kStart;
  while (now < kStart + 9s) {
    if (const auto part = books.next_part(Urgency::kDemand, now)) {
      books.part_ended(*part, part->range.begin, &refused, now);
    }
    CHECK_FALSE(books.tick(now).timed_out);
    now += 100ms;
  }
  CHECK(books.tick(kStart + 10s).timed_out);
}

TEST_CASE("a place that cannot be read does not keep the others from coming") {
  FillLedger books = ledger(8 * kMiB);
  REQUIRE(books.join());
  books.raise(Want::kFile, kStart);
  skip_clone(books, Urgency::kFile);
  books.park(read(1, {kMiB, kMiB + 1}), kStart);
  const TransientError bad(Errc::kIo, "bad sector");
  TimePoint now = kStart;
  for (int i = 0; i < 2; ++i, now += 1min) {
    (void)books.tick(now);
    const auto part = books.next_part(Urgency::kDemand, now);
    REQUIRE(part);
    CHECK(part->range.begin == kMiB);
    books.part_ended(*part, kMiB, &bad, now);
  }
  (void)books.tick(now);
  CHECK_FALSE(books.next_part(Urgency::kDemand, now));
  const auto part = books.next_part(Urgency::kFile, now);
  REQUIRE(part);
  CHECK(part->range.begin == kMiB + kBlock);
}

TEST_CASE("a reader who comes long after the others' failures has the whole deadline") {
  FetcherOptions options;
  options.deadline = 10s;
  FillLedger books = ledger(100 * kMiB, options);
  REQUIRE(books.join());
  books.park(read(1, {0, 1}), kStart);
  const auto part = books.next_part(Urgency::kDemand, kStart);
  const TransientError refused(Errc::kUnavailable, "refused");
  books.part_ended(*part, part->range.begin, &refused, kStart);
  REQUIRE(books.cancel(1));
  CHECK_FALSE(books.tick(kStart + 1s).again);
  books.park(read(2, {0, 1}), kStart + 1h);
  REQUIRE(books.next_part(Urgency::kDemand, kStart + 1h));
  CHECK_FALSE(books.tick(kStart + 1h + 9s).timed_out);
}

TEST_CASE("strict: nothing is readable, and the whole is what a reader waits for") {
  FetcherOptions options;
  options.verify = Verify::kStrict;
  FillLedger books = ledger(kMiB, options);
  REQUIRE(books.join());
  books.park(read(1, {0, 1}), kStart);
  CHECK(books.progress().want == Want::kFile);
  skip_clone(books, Urgency::kDemand);
  const auto part = books.next_part(Urgency::kDemand, kStart);
  REQUIRE(part);
  deliver(books, *part);
  CHECK_FALSE(books.readable({0, 1}));
  CHECK(books.complete()->size() == 1);
  CHECK(books.readable({0, 1}));
}

TEST_CASE("what an earlier fill left is hashed when somebody wants the file, not for a header") {
  std::vector<bool> written(1600, true);
  written.back() = false;
  FillLedger books = ledger(100 * kMiB, {}, written);
  REQUIRE(books.join());
  CHECK_FALSE(books.hash_due());
  books.raise(Want::kBackground, kStart);
  CHECK(books.hash_due());
}

TEST_CASE("how far a file is there without a gap is known, whoever left it there") {
  std::vector<bool> written(1600, false);
  written[0] = written[2] = true;
  FillLedger books = ledger(100 * kMiB, {}, written);
  CHECK(books.progress().frontier == kBlock);
  CHECK(books.progress().received == 0);
  books.park(read(1, {kBlock, kBlock + 1}), kStart);
  deliver(books, *books.next_part(Urgency::kDemand, kStart));
  CHECK(books.progress().frontier == 3 * kBlock);
}

TEST_CASE("one hasher at a time, and the one that arrives keeps the end to itself") {
  FillLedger books = ledger(2 * kMiB, {}, std::vector<bool>(32, true));
  CHECK(books.begin_hash() == 2 * kMiB);
  CHECK_FALSE(books.begin_hash());
  books.end_hash(kMiB);
  CHECK_FALSE(books.fully_hashed());
  CHECK(books.begin_hash() == 2 * kMiB);
  books.end_hash(2 * kMiB);
  CHECK(books.fully_hashed());
  CHECK_FALSE(books.begin_hash());
}

TEST_CASE("what is closed is not hashed any more, whoever comes late for that") {
  FillLedger books = remote_ledger();
  REQUIRE(books.join());
  books.raise(Want::kFile, kStart);
  deliver(books, *books.next_part(Urgency::kFile, kStart));
  REQUIRE(books.hash_due());
  books.leave();
  REQUIRE(books.close_if_idle());
  CHECK_FALSE(books.hash_due());
  CHECK_FALSE(books.begin_hash());
}

TEST_CASE("an empty file has a hash, too") {
  FillLedger books = ledger(0);
  CHECK(books.hash_due());
  CHECK(books.begin_hash() == 0);
  books.end_hash(0);
  CHECK(books.fully_hashed());
}

TEST_CASE("past the disk everything is missing again, and old parts have nowhere to go") {
  FillLedger books = ledger();
  REQUIRE(books.join());
  books.park(read(1, {0, 1}), kStart);
  const auto part = books.next_part(Urgency::kDemand, kStart);
  CHECK(books.accepts(*part));
  CHECK(books.move_to_memory());
  CHECK_FALSE(books.move_to_memory());
  CHECK_FALSE(books.accepts(*part));
  CHECK_FALSE(books.work(kStart)[kDemand]);  // not before the read was admitted
  CHECK(books.admit(kMiB, [](std::uint64_t) { return nullptr; }).empty());
  CHECK(books.work(kStart)[kDemand]);
  const auto again = books.next_part(Urgency::kDemand, kStart);
  CHECK(again->range == part->range);
  CHECK(again->place == Place::kMemory);
  books.part_ended(*part, part->range.begin, nullptr, kStart);
  CHECK_FALSE(books.work(kStart)[kDemand]);
  CHECK_FALSE(books.hash_due());
}

TEST_CASE("the first failure stays; completion is not undone") {
  FillLedger books = ledger(kMiB);
  books.park(read(1, {0, 1}), kStart);
  CHECK(books.fail(Error(Errc::kChanged, "changed"))->size() == 1);
  CHECK_FALSE(books.fail(Error(Errc::kTimedOut, "late")));
  CHECK_FALSE(books.complete());
  CHECK(books.error()->code() == Errc::kChanged);
  CHECK_FALSE(books.join());

  FillLedger other = ledger(kMiB);
  CHECK(other.complete());
  CHECK_FALSE(other.fail(Error(Errc::kTimedOut, "late")));
}

}  // namespace
}  // namespace weightfs::fetch
