// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

namespace weightfs::fetch {
namespace {

using namespace std::chrono_literals;

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
  source->on_chunk(fail_at(0, 1, reset_connection));
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
