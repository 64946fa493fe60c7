// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/part_workers.hpp"
#include "fetch_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <pthread.h>

#include <system_error>
#include <thread>

namespace weightfs::fetch {
namespace {

using namespace std::chrono_literals;

/// While it lives, no thread can be made: the stack that each would get has no room anywhere.
class NoNewThreads {
 public:
  NoNewThreads() {
    ::pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    ::pthread_getattr_default_np(&huge);
    works_ = ::pthread_attr_setstacksize(&huge, std::size_t{1} << 47) == 0 &&
             ::pthread_setattr_default_np(&huge) == 0;
    ::pthread_attr_destroy(&huge);
  }
  NoNewThreads(const NoNewThreads&) = delete;
  NoNewThreads& operator=(const NoNewThreads&) = delete;
  ~NoNewThreads() {
    ::pthread_setattr_default_np(&before_);
    ::pthread_attr_destroy(&before_);
  }
  [[nodiscard]] bool works() const {
    if (!works_) return false;
    try {
      std::jthread([] {});
    } catch (const std::system_error&) {
      return true;
    }
    return false;
  }

 private:
  pthread_attr_t before_{};
  bool works_ = false;
};

/// Fails the first `count` times that a chunk at `offset` is due.
FakeSource::OnChunk fail_at(std::uint64_t offset, int count, std::function<void()> failure) {
  return [=, left = std::make_shared<std::atomic<int>>(count)](const snapshot::File&,
                                                               ByteRange chunk, std::stop_token) {
    if (chunk.begin == offset && (*left)-- > 0) failure();
  };
}

void reset_connection() {
  throw TransientError(Errc::kUnavailable, "connection reset");
}

TEST_CASE_METHOD(FetchFixture, "a connection that breaks is resumed from its last byte") {
  options.connections_per_blob = 1;
  source->on_chunk(fail_at(80 * kKiB, 1, reset_connection));
  start();
  const Target wanted = target("a", kMiB);
  CHECK(reads_right(fetcher().fill(wanted), {0, kMiB}));
  CHECK(source->requests() ==
        std::vector<FakeSource::Request>{{"a", {0, kMiB}}, {"a", {80 * kKiB, kMiB}}});
  CHECK(source->not_once(wanted.file()).empty());
  CHECK(fetcher().counters().retries == 1);
}

TEST_CASE_METHOD(FetchFixture, "one broken connection does not stop the others") {
  options.part_size = kMiB;
  options.retry = {.first_delay = 1h, .max_delay = 1h};
  options.deadline = 10h;
  // Not before the others are under way: alone it would be a source that is down.
  source->on_chunk(fail_at(0, 1, [&] {
    (void)eventually([&] { return source->requests().size() == 16; });
    reset_connection();
  }));
  start();
  const Target wanted = target("a", 16 * kMiB);
  const FillPtr fill = fetcher().fill(wanted);
  fill->want(Want::kFile);
  PendingRead last(fill, 15 * kMiB, 100);
  CHECK(last.wait() == FakeSource::content("a", {15 * kMiB, 15 * kMiB + 100}));
  PendingRead first(fill, 0, 100);
  REQUIRE(eventually(
      [&] { return fetcher().counters().retries == 1 && fill->progress().connections == 0; }));
  CHECK_FALSE(first.done());
  clock.advance(1h);
  CHECK(first.wait() == FakeSource::content("a", {0, 100}));
}

TEST_CASE_METHOD(FetchFixture, "a source that is down is probed by one connection, not by all") {
  options.part_size = kMiB;
  options.connections_per_blob = 8;
  const auto down = std::make_shared<std::atomic<bool>>(true);
  source->on_chunk([down](const auto&, ByteRange, std::stop_token) {
    if (*down) reset_connection();
  });
  start();
  const Target wanted = target("a", 20 * kMiB);
  const FillPtr fill = fetcher().fill(wanted);
  fill->want(Want::kFile);
  REQUIRE(eventually([&] { return fetcher().counters().retries >= 20; }));
  CHECK(fill->progress().connections <= 1);
  *down = false;
  REQUIRE(eventually([&] { return fill->progress().state == FillState::kComplete; }));
  CHECK(source->not_once(wanted.file()).empty());
}

TEST_CASE_METHOD(FetchFixture, "an answer that ends early is asked on") {
  start();
  class Short final : public source::Source {
   public:
    explicit Short(source::SourcePtr inner) : inner_(std::move(inner)) {}
    snapshot::Snapshot resolve(std::stop_token stop) override { return inner_->resolve(stop); }
    void read(const snapshot::File& file, ByteRange range, source::Sink& sink,
              std::stop_token stop) override {
      inner_->read(file, {range.begin, std::min(range.end, range.begin + 300 * kKiB)}, sink, stop);
    }
    std::optional<Fd> open_local(const snapshot::File&) override { return std::nullopt; }
    std::string describe() const override { return "short"; }

   private:
    source::SourcePtr inner_;
  };
  Target wanted = target("a", kMiB);
  wanted.source = std::make_shared<Short>(source);
  CHECK(reads_right(fetcher().fill(wanted), {0, kMiB}));
  CHECK(source->not_once(wanted.file()).empty());
}

TEST_CASE_METHOD(FetchFixture, "a wait without a byte ends at the deadline, and so does the fill") {
  source->on_chunk([&](const auto&, ByteRange, std::stop_token stop) { gate.wait(stop); });
  start();
  const Target wanted = target("a", kMiB);
  const FillPtr fill = fetcher().fill(wanted);
  PendingRead read(fill, 0, 100);
  REQUIRE(eventually([&] { return gate.arrived() == 1; }));
  clock.advance(options.deadline - 10s);
  PendingRead other(fill, 512 * kKiB, 100);  // does not prolong it
  CHECK_FALSE(read.done());
  clock.advance(10s);
  CHECK(read.failure() == Errc::kTimedOut);
  CHECK(other.failure() == Errc::kTimedOut);
  CHECK(fill->error()->code() == Errc::kTimedOut);
  CHECK(observer.failed() == std::vector{Errc::kTimedOut});
  // A later open begins anew.
  gate.open();
  CHECK(reads_right(fetcher().fill(wanted), {0, 100}));
}

TEST_CASE_METHOD(FetchFixture, "bytes put the deadline off") {
  source->on_chunk([&](const auto&, ByteRange chunk, std::stop_token stop) {
    (chunk.begin < 64 * kKiB ? gate : second_gate).wait(stop);
  });
  start();
  const FillPtr fill = this->fill("a", 128 * kKiB);
  PendingRead read(fill, 0, 128 * kKiB);
  REQUIRE(eventually([&] { return gate.arrived() == 1; }));
  clock.advance(options.deadline - 30s);
  gate.open();
  REQUIRE(eventually([&] { return second_gate.arrived() == 1; }));
  clock.advance(options.deadline - 30s);
  second_gate.open();
  CHECK(read.wait().size() == 128 * kKiB);
}

TEST_CASE_METHOD(FetchFixture, "a byte that never comes ends the fill although others do") {
  options.part_size = kMiB;
  source->on_chunk([](const auto&, ByteRange chunk, std::stop_token) {
    if (chunk.begin == 0) reset_connection();
  });
  start();
  const FillPtr fill = this->fill("a", 4 * kMiB);
  fill->want(Want::kFile);
  PendingRead read(fill, 0, 100);
  REQUIRE(eventually([&] { return fill->progress().written >= 3 * kMiB; }));
  CHECK(eventually([&] {
    clock.advance(1s);
    return read.done();
  }));
  CHECK(read.failure() == Errc::kTimedOut);
  REQUIRE(fill->error());
  CHECK(std::string(fill->error()->what()).find("connection reset") != std::string::npos);
}

TEST_CASE_METHOD(FetchFixture, "waiting for a connection that others have is not a failure") {
  options.connections = 1;
  options.part_size = kMiB;
  source->on_chunk([&](const snapshot::File& file, ByteRange, std::stop_token stop) {
    if (file.path == "slow") gate.wait(stop);
  });
  start();
  const FillPtr slow = this->fill("slow", kMiB);
  PendingRead first(slow, 0, kMiB);
  REQUIRE(eventually([&] { return gate.arrived() == 1; }));
  const FillPtr other = this->fill("other", kMiB);
  PendingRead second(other, 0, kMiB);
  clock.advance(options.deadline - 1s);
  gate.open();
  CHECK(first.wait().size() == kMiB);
  CHECK(second.wait().size() == kMiB);
}

TEST_CASE_METHOD(FetchFixture, "connections that a source never gives back are replaced") {
  options.connections = 2;
  options.connections_per_blob = 2;
  options.part_size = kMiB;
  // As in the kernel, where no stop reaches it.
  source->on_chunk([&](const auto&, ByteRange, std::stop_token) { gate.wait({}); });
  start();
  const FillPtr fill = this->fill("a", 4 * kMiB);
  fill->want(Want::kFile);
  REQUIRE(eventually([&] { return gate.arrived() == 2; }));
  Target elsewhere = target("b", kMiB);
  const auto healthy = std::make_shared<FakeSource>();
  elsewhere.source = healthy;
  const FillPtr other = fetcher().fill(elsewhere);
  PendingRead read(other, 0, 100);
  clock.advance(options.deadline);
  CHECK(read.wait() == content(elsewhere, {0, 100}));
  CHECK(fill->error()->code() == Errc::kTimedOut);
  other->want(Want::kFile);
  CHECK(eventually([&] { return other->progress().state == FillState::kComplete; }));
  CHECK(healthy->most_at_once() <= 2);
  gate.open();
}

TEST_CASE_METHOD(FetchFixture, "a source that gives none of its connections back gets no more") {
  options.part_size = kMiB;
  options.connections_per_blob = PartWorkers::kMostLost;
  source->on_chunk([&](const auto&, ByteRange, std::stop_token) { gate.wait({}); });
  start();
  const FillPtr fill = this->fill("a", 2 * PartWorkers::kMostLost * kMiB);
  fill->want(Want::kFile);
  REQUIRE(eventually([&] { return gate.arrived() == PartWorkers::kMostLost; }));
  clock.advance(options.deadline);
  REQUIRE(eventually([&] { return fill->error().has_value(); }));
  const Target wanted = target("b", kMiB);
  const FillPtr next = fetcher().fill(wanted);
  SECTION("who reads is told after a while") {
    PendingRead read(next, 0, 100);
    clock.advance(2 * options.deadline);
    CHECK(read.failure() == Errc::kTimedOut);
  }
  SECTION("who prepares is told, too") {
    next->want(Want::kBackground);
    CHECK(eventually([&] {
      clock.advance(1s);
      return next->error().has_value();
    }));
    REQUIRE(next->error());
    CHECK(next->error()->code() == Errc::kTimedOut);
  }
  CHECK(gate.arrived() == PartWorkers::kMostLost);
  gate.open();
  CHECK(eventually([&] {
    PendingRead again(fetcher().fill(wanted), 0, 100);
    return again.wait() == content(wanted, {0, 100});
  }));
}

TEST_CASE_METHOD(FetchFixture, "without a thread for it, a read waits for one and does not fail") {
  start();
  const FillPtr fill = this->fill("a", kMiB);
  std::unique_ptr<PendingRead> read;
  {
    const NoNewThreads none;
    if (!none.works()) SKIP("threads can be made whatever the size of their stack");
    read = std::make_unique<PendingRead>(fill, 0, 100);
    CHECK_FALSE(read->done());
  }
  CHECK(read->wait() == FakeSource::content("a", {0, 100}));
}

TEST_CASE_METHOD(FetchFixture, "whoever waits is answered before what came is flushed") {
  source->on_chunk([](const auto&, ByteRange chunk, std::stop_token) {
    if (chunk.begin >= 128 * kKiB) throw Error(Errc::kPermission, "no");
  });
  start();
  const Target wanted = target("a", kMiB);
  const FillPtr fill = fetcher().fill(wanted);
  CHECK(reads_right(fill, {0, 100}));
  std::promise<std::size_t> running;
  fill->read(512 * kKiB, 100,
             [&](const ReadResult&) { running.set_value(fetcher().fills().size()); });
  CHECK(running.get_future().get() == 1);  // not closed yet
  CHECK(fetcher().fill(wanted)->progress().written == 64 * kKiB);
}

TEST_CASE_METHOD(FetchFixture, "a file that is sent whole is not sent on once its reader is gone") {
  source->sends_ranges = false;
  source->on_chunk([&](const auto&, ByteRange chunk, std::stop_token stop) {
    if (chunk.begin >= kMiB) gate.wait(stop);
  });
  start();
  const Target wanted = target("a", 40 * kMiB);
  FillPtr fill = fetcher().fill(wanted);
  CHECK(reads_right(fill, {0, 1}));
  REQUIRE(eventually([&] { return gate.arrived() == 1; }));
  fill.reset();
  gate.open();
  REQUIRE(eventually([&] { return fetcher().fills().empty(); }));
  CHECK(source->delivered() <= 2 * kMiB);
  CHECK(source->requests().size() == 1);
  // It goes on from there, past what it has.
  fill = fetcher().fill(wanted);
  CHECK(fill->progress().written >= kMiB);
  fill->want(Want::kFile);
  REQUIRE(eventually([&] { return fill->progress().state == FillState::kComplete; }));
  CHECK(source->requests().size() == 2);
  CHECK(source->most_at_once() == 1);
}

TEST_CASE_METHOD(FetchFixture, "a source's final word ends the fill at once, for every reader") {
  for (const Errc code : {Errc::kNotFound, Errc::kPermission, Errc::kInvalid, Errc::kChanged}) {
    CAPTURE(name(code));
    FetchFixture fixture;
    fixture.source->on_chunk([code](const auto&, ByteRange chunk, std::stop_token) {
      if (chunk.begin >= 128 * kKiB) throw Error(code, "the source says no");
    });
    fixture.start();
    const Target wanted = fixture.target("a", kMiB);
    const FillPtr fill = fixture.fetcher().fill(wanted);
    CHECK(fixture.reads_right(fill, {0, 128 * kKiB}));
    CHECK(PendingRead(fill, 0, kMiB).failure() == code);
    CHECK(PendingRead(fill, 0, 10).failure() == code);
    CHECK(fixture.observer.failed() == std::vector{code});
    // What came of a version that is gone is worth nothing; else it is kept.
    const std::uint64_t kept = code == Errc::kChanged ? 0 : 128 * kKiB;
    CHECK(fixture.fetcher().fill(wanted)->progress().written == kept);
  }
}

TEST_CASE_METHOD(FetchFixture,
                 "a wrong digest is quarantined, reported, and fetched again by the next") {
  start();
  snapshot::File file = FakeSource::file("a", 3 * kMiB);
  file.sha256 = Digest::of("something else");
  const Target wanted = target(file);
  for (unsigned round = 1; round <= 2; ++round) {
    const FillPtr fill = fetcher().fill(wanted);
    CHECK(fill->progress().written == 0);
    fill->want(Want::kFile);
    REQUIRE(eventually([&] { return fill->progress().state == FillState::kFailed; }));
    CHECK(PendingRead(fill, 0, 100).failure() == Errc::kCorrupt);
    REQUIRE(eventually([&] { return observer.failed().size() == round; }));
    CHECK(fetcher().counters().corrupt == round);
    CHECK(source->delivered() == round * 3 * kMiB);
  }
  CHECK(observer.failed() == std::vector{Errc::kCorrupt, Errc::kCorrupt});
  CHECK(store->usage().quarantined >= 1);
  CHECK(store->usage().blobs == 0);
}

TEST_CASE_METHOD(FetchFixture, "strict: no byte of a file with a wrong digest gets out") {
  options.verify = Verify::kStrict;
  start();
  snapshot::File file = FakeSource::file("a", kMiB);
  file.sha256 = Digest::of("something else");
  CHECK(PendingRead(fetcher().fill(target(file)), 0, 100).failure() == Errc::kCorrupt);
}

TEST_CASE_METHOD(FetchFixture, "when a failure is reported, the next fill can begin") {
  source->on_chunk([](const auto&, ByteRange, std::stop_token) {
    throw Error(Errc::kChanged, "another object");
  });
  start();
  const Target wanted = target("a", kMiB);
  FillPtr next;
  observer.then = [&](const Target& failed) { next = fetcher().fill(failed); };
  CHECK(PendingRead(fetcher().fill(wanted), 0, 100).failure() == Errc::kChanged);
  REQUIRE(next);
  source->on_chunk(nullptr);
  CHECK(reads_right(next, {0, 100}));
}

TEST_CASE_METHOD(
    FetchFixture,
    "bytes that were given out and may be another version's are disowned with the fill") {
  const auto changed = std::make_shared<std::atomic<bool>>(false);
  source->on_chunk([changed](const auto&, ByteRange, std::stop_token) {
    if (*changed) throw Error(Errc::kChanged, "another object");
  });
  start();
  snapshot::File file = FakeSource::file("a", kMiB);
  bool expected = true;
  SECTION("the digest of the file is known, and nothing says which version the bytes are of") {
  }
  SECTION("the file is known by its validator, as its key is") {
    file.sha256.reset();
    file.validator = "\"etag\"";
    expected = false;
  }
  const Target wanted = target(file);
  FillPtr fill = fetcher().fill(wanted);
  CHECK(reads_right(fill, {0, 100}));
  SECTION("by this fill") {
  }
  SECTION("by an earlier one") {
    fill.reset();
    REQUIRE(eventually([&] { return fetcher().fills().empty(); }));
    fill = fetcher().fill(wanted);
  }
  *changed = true;
  CHECK(PendingRead(fill, 512 * kKiB, 100).failure() == Errc::kChanged);
  CHECK(observer.disowned().size() == (expected ? 1 : 0));
}

TEST_CASE_METHOD(FetchFixture, "where nothing was given out there is nothing to disown") {
  source->on_chunk([](const auto&, ByteRange, std::stop_token) {
    throw Error(Errc::kChanged, "another object");
  });
  start();
  CHECK(PendingRead(this->fill("a", kMiB), 0, 100).failure() == Errc::kChanged);
  CHECK(observer.disowned().empty());
}

TEST_CASE_METHOD(FetchFixture, "bytes are disowned before the next fill of their key can begin") {
  start();
  snapshot::File file = FakeSource::file("a", kMiB);
  file.sha256 = Digest::of("something else");
  const Target wanted = target(file);
  const FillPtr fill = fetcher().fill(wanted);
  std::future<FillPtr> next;
  observer.when_disowned = [&](const Target&) {
    CHECK(fill->progress().state == FillState::kFailed);
    next = std::async(std::launch::async, [&] { return fetcher().fill(wanted); });
    // It can only come once this returns, so the wait is in vain.
    CHECK(next.wait_for(50ms) == std::future_status::timeout);
  };
  CHECK(reads_right(fill, {0, 100}));
  fill->want(Want::kFile);
  REQUIRE(eventually([&] { return !observer.failed().empty(); }));
  CHECK(observer.disowned().size() == 1);
  observer.when_disowned = nullptr;
  CHECK(next.get() != fill);
}

TEST_CASE_METHOD(FetchFixture, "the end of the process ends every wait at once") {
  source->on_chunk([&](const auto&, ByteRange, std::stop_token stop) { gate.wait(stop); });
  start();
  std::vector<FillPtr> fills;
  std::vector<std::unique_ptr<PendingRead>> reads;
  for (int i = 0; i < 10; ++i) {
    fills.push_back(fill("file-" + std::to_string(i), kMiB));
    reads.push_back(std::make_unique<PendingRead>(fills.back(), 0, 100));
  }
  stop();
  for (const auto& read : reads) CHECK(read->failure() == Errc::kCancelled);
}

}  // namespace
}  // namespace weightfs::fetch
