// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/fetcher.hpp"

#include "fetch_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <thread>

namespace weightfs::fetch {
namespace {

using namespace std::chrono_literals;

TEST_CASE_METHOD(FetchFixture, "nothing is asked of the source before somebody reads") {
  start();
  const FillPtr fill = this->fill("model.safetensors", 10 * kMiB);
  CHECK(fill->progress().state == FillState::kFilling);
  CHECK(source->requests().empty());
}

TEST_CASE_METHOD(FetchFixture, "a read brings its own blocks and no more") {
  start();
  const FillPtr fill = this->fill("config.json", 10 * kMiB);
  CHECK(reads_right(fill, {100, 300}));
  CHECK(reads_right(fill, {5 * kMiB + 1, 5 * kMiB + 70 * kKiB}));
  CHECK(source->requests() ==
        std::vector<FakeSource::Request>{{"config.json", {0, 64 * kKiB}},
                                         {"config.json", {5 * kMiB, 5 * kMiB + 128 * kKiB}}});
  CHECK(fetcher().counters().waited_reads == 2);
  CHECK(fetcher().counters().waited_bytes == 200 + 70 * kKiB - 1);
}

TEST_CASE_METHOD(FetchFixture, "a read ends with the file") {
  start();
  const FillPtr fill = this->fill("a", 1000);
  CHECK(reads_right(fill, {900, 1000}));
  CHECK(PendingRead(fill, 900, 5000).wait() == FakeSource::content("a", {900, 1000}));
  CHECK(PendingRead(fill, 1000, 10).wait().empty());
  CHECK(PendingRead(fill, ~0ULL, ~0ULL).wait().empty());
}

TEST_CASE_METHOD(FetchFixture,
                 "bytes that are there are answered at once, on the reader's thread") {
  start();
  const FillPtr fill = this->fill("a", kMiB);
  CHECK(reads_right(fill, {0, 64 * kKiB}));
  bool answered = false;
  const auto here = std::this_thread::get_id();
  fill->read(0, 100, [&](const ReadResult& result) {
    answered = std::this_thread::get_id() == here && result.data.size() == 100;
  });
  CHECK(answered);
  CHECK(source->requests().size() == 1);
}

TEST_CASE_METHOD(FetchFixture, "fifty concurrent readers of one file make one request") {
  source->on_chunk([&](const auto&, ByteRange, std::stop_token stop) { gate.wait(stop); });
  start();
  const Target wanted = target("a", 64 * kKiB);
  std::vector<std::jthread> readers;
  std::atomic<unsigned> right = 0;
  for (int i = 0; i < 50; ++i) {
    readers.emplace_back([&] { right += reads_right(fetcher().fill(wanted), {0, 64 * kKiB}); });
  }
  REQUIRE(eventually([&] {
    const auto fills = fetcher().fills();
    return fills.size() == 1 && fills[0]->progress().parked == 50;
  }));
  gate.open();
  readers.clear();
  CHECK(right == 50);
  CHECK(source->requests().size() == 1);
  CHECK(fetcher().counters().requests == 1);
}

TEST_CASE_METHOD(FetchFixture, "the same bytes in two snapshots are one fill") {
  start();
  snapshot::File one = FakeSource::file("a", kMiB);
  snapshot::File other = one;
  other.path = "elsewhere";
  const FillPtr fill = fetcher().fill(target(one));
  CHECK(reads_right(fill, {0, kMiB}));
  // The other name never has to ask: its content is the first one's.
  CHECK(PendingRead(fetcher().fill(target(other)), 0, 100).wait() ==
        FakeSource::content("a", {0, 100}));
  CHECK(source->requests().size() == 1);
}

TEST_CASE_METHOD(FetchFixture, "a parked read is answered as soon as its own bytes are there") {
  source->on_chunk([&](const auto&, ByteRange chunk, std::stop_token stop) {
    if (chunk.begin >= 128 * kKiB) gate.wait(stop);
  });
  start();
  const FillPtr fill = this->fill("a", 8 * kMiB);
  fill->want(Want::kFile);
  CHECK(reads_right(fill, {0, 128 * kKiB}));
  PendingRead later(fill, 256 * kKiB, 10);
  CHECK_FALSE(later.done());
  gate.open();
  CHECK(later.wait() == FakeSource::content("a", {256 * kKiB, 256 * kKiB + 10}));
}

TEST_CASE_METHOD(FetchFixture,
                 "a demand goes before what is read ahead, and before the background") {
  options.connections = 1;
  options.part_size = kMiB;
  source->on_chunk([&](const auto&, ByteRange, std::stop_token stop) { gate.wait(stop); });
  start();
  const FillPtr background = this->fill("background", 3 * kMiB);
  const FillPtr ahead = this->fill("ahead", 3 * kMiB);
  const FillPtr read = this->fill("read", 3 * kMiB);
  background->want(Want::kBackground);
  REQUIRE(eventually([&] { return gate.arrived() == 1; }));
  ahead->want(Want::kFile);
  PendingRead demand(read, 2 * kMiB, 100);
  PendingRead jump(ahead, 2 * kMiB, 100);
  gate.open();
  (void)demand.wait();
  REQUIRE(eventually([&] { return observer.completed().size() == 2; }));
  std::vector<std::string> order;
  for (const auto& request : source->requests()) order.push_back(request.path);
  REQUIRE(order.size() >= 6);
  CHECK(order[0] == "background");
  CHECK(order[1] == "read");
  CHECK(std::vector(order.begin() + 2, order.begin() + 5) ==
        std::vector<std::string>{"ahead", "ahead", "ahead"});
  CHECK(source->requests()[2].range.begin == 2 * kMiB);
}

TEST_CASE_METHOD(FetchFixture, "connections are limited, in all and per blob, and shared in turn") {
  options.connections = 6;
  options.connections_per_blob = 4;
  options.part_size = kMiB;
  source->on_chunk([&](const auto&, ByteRange, std::stop_token stop) { gate.wait(stop); });
  start();
  const FillPtr one = this->fill("one", 40 * kMiB);
  const FillPtr two = this->fill("two", 40 * kMiB);
  one->want(Want::kFile);
  REQUIRE(eventually([&] { return gate.arrived() == 4; }));
  two->want(Want::kFile);
  REQUIRE(eventually([&] { return gate.arrived() == 6; }));
  CHECK(one->progress().connections == 4);
  CHECK(two->progress().connections == 2);
  gate.open();
  REQUIRE(eventually([&] { return observer.completed().size() == 2; }));
  CHECK(source->most_at_once() <= 6);
}

TEST_CASE_METHOD(FetchFixture, "a whole file is fetched once, verified, published and served") {
  start();
  const Target wanted = target("model.safetensors", 20 * kMiB + 123);
  {
    const FillPtr fill = fetcher().fill(wanted);
    std::atomic<unsigned> ended = 0;
    fill->on_end([&] { ++ended; });
    fill->want(Want::kFile);
    REQUIRE(eventually([&] { return fill->progress().state == FillState::kComplete; }));
    REQUIRE(eventually([&] { return ended == 1; }));
    fill->on_end([&] { ++ended; });
    CHECK(ended == 2);
    CHECK(reads_right(fill, {0, 20 * kMiB + 123}));
    CHECK(fill->progress().hashed == 20 * kMiB + 123);
  }
  CHECK(source->not_once(wanted.file()).empty());
  CHECK(observer.completed() == std::vector<std::string>{"model.safetensors"});
  CHECK(store->contains(*wanted.file().sha256));
  CHECK(fetcher().fills().empty());
  CHECK(fetcher().counters().completed == 1);
  CHECK(fetcher().counters().source_bytes == 20 * kMiB + 123);

  const FillPtr again = fetcher().fill(wanted);
  CHECK(again->progress().state == FillState::kComplete);
  CHECK(reads_right(again, {7 * kMiB, 9 * kMiB}));
  CHECK(source->not_once(wanted.file()).empty());
}

TEST_CASE_METHOD(FetchFixture,
                 "a file whose digest is not known is published under the one it has") {
  start();
  snapshot::File file = FakeSource::file("a", 3 * kMiB);
  const Digest digest = *std::exchange(file.sha256, std::nullopt);
  file.validator = "\"etag\"";
  const FillPtr fill = fetcher().fill(target(file));
  fill->want(Want::kBackground);
  REQUIRE(eventually([&] { return !observer.completed().empty(); }));
  CHECK(observer.last_digest() == digest);
  CHECK(store->contains(digest));
}

TEST_CASE_METHOD(
    FetchFixture,
    "who comes while a digest is learned, or knows nothing of it yet, fetches nothing") {
  start();
  snapshot::File file = FakeSource::file("a", 3 * kMiB);
  const Digest digest = *std::exchange(file.sha256, std::nullopt);
  file.validator = "\"etag\"";
  std::optional<FillState> meanwhile;
  observer.when_complete = [&](const Target& target) {
    meanwhile = fetcher().fill(target)->progress().state;
  };
  {
    const FillPtr fill = fetcher().fill(target(file));
    fill->want(Want::kFile);
    REQUIRE(eventually([&] { return fill->progress().state == FillState::kComplete; }));
  }
  REQUIRE(eventually([&] { return fetcher().fills().empty(); }));
  CHECK(meanwhile == FillState::kComplete);

  const FillPtr late = fetcher().fill(target(file));
  CHECK(late->progress().state == FillState::kComplete);
  CHECK(reads_right(late, {0, 3 * kMiB}));
  CHECK(observer.last_digest() == digest);
  CHECK(fetcher().counters().source_bytes == 3 * kMiB);
  CHECK(source->not_once(file).empty());
}

TEST_CASE_METHOD(FetchFixture, "an empty file completes at once") {
  start();
  const FillPtr fill = this->fill("empty", 0);
  CHECK(PendingRead(fill, 0, 100).wait().empty());
  CHECK(eventually([&] { return fill->progress().state == FillState::kComplete; }));
  CHECK(source->requests().empty());
}

TEST_CASE_METHOD(FetchFixture,
                 "a reader who reads on gets the file ahead; a loader is reported once") {
  options.file_ahead_after = 2 * kMiB;
  options.snapshot_ahead_after = 4 * kMiB;
  start();
  const FillPtr fill = this->fill("model.safetensors", 64 * kMiB);
  CHECK(reads_right(fill, {0, kMiB}));
  CHECK(fill->progress().want == Want::kDemand);
  CHECK(reads_right(fill, {kMiB, 2 * kMiB}));
  CHECK(fill->progress().want == Want::kFile);
  CHECK(observer.loaders() == 0);
  CHECK(reads_right(fill, {2 * kMiB, 4 * kMiB}));
  CHECK(reads_right(fill, {4 * kMiB, 6 * kMiB}));
  CHECK(observer.loaders() == 1);
  CHECK(eventually([&] { return fill->progress().state == FillState::kComplete; }));
}

TEST_CASE_METHOD(FetchFixture, "an indexer over many files pulls the heads that it reads") {
  start();
  for (int i = 0; i < 20; ++i) {
    const FillPtr fill = this->fill("model-" + std::to_string(i) + ".safetensors", 20 * kMiB);
    CHECK(reads_right(fill, {0, kMiB}));
  }
  CHECK(eventually([&] { return fetcher().fills().empty(); }));
  CHECK(source->delivered() == 20 * kMiB);
}

TEST_CASE_METHOD(FetchFixture, "a cancelled read ends at once and the others go on") {
  source->on_chunk([&](const auto&, ByteRange, std::stop_token stop) { gate.wait(stop); });
  start();
  const FillPtr fill = this->fill("a", kMiB);
  PendingRead one(fill, 0, 100);
  PendingRead two(fill, 0, 200);
  fill->cancel(one.id());
  CHECK(one.failure() == Errc::kCancelled);
  fill->cancel(one.id());
  fill->cancel(12345);
  gate.open();
  CHECK(two.wait().size() == 200);
}

TEST_CASE_METHOD(FetchFixture, "what nobody may come for any more goes when its fill closes") {
  start();
  const Target wanted = target("a", 10 * kMiB);
  FillPtr fill = fetcher().fill(wanted);
  const auto partials = directory / "store" / "partial";
  CHECK(reads_right(fill, {0, 100}));
  observer.somebody_may_come = false;
  CHECK(reads_right(fill, {kMiB, kMiB + 100}));  // not as long as somebody reads it
  CHECK_FALSE(std::filesystem::is_empty(partials));
  SECTION("because its last reader has gone") {
    fill.reset();
  }
  SECTION("because it has failed") {
    source->on_chunk(
        [](const auto&, ByteRange, std::stop_token) { throw Error(Errc::kPermission, "no"); });
    CHECK(PendingRead(fill, 2 * kMiB, 100).failure() == Errc::kPermission);
  }
  REQUIRE(eventually([&] { return fetcher().fills().empty(); }));
  CHECK(std::filesystem::is_empty(partials));
  CHECK(store->usage().partial_bytes == 0);
  CHECK(observer.disowned() == std::vector<std::string>{"a"});  // readers had bytes of it
}

TEST_CASE_METHOD(FetchFixture, "what nobody may come for any more is not published") {
  start();
  const Target wanted = target("a", 10 * kMiB);
  FillPtr fill = fetcher().fill(wanted);
  observer.somebody_may_come = false;
  fill->want(Want::kFile);
  REQUIRE(eventually([&] { return fill->progress().state == FillState::kComplete; }));
  CHECK(reads_right(fill, {0, 10 * kMiB}));  // who has it open keeps it
  CHECK(store->list().empty());
  CHECK(std::filesystem::is_empty(directory / "store" / "partial"));
  CHECK(observer.completed().empty());
  CHECK(eventually([&] { return fetcher().fills().empty(); }));
}

TEST_CASE_METHOD(FetchFixture, "what was right is no reason for a new node, published or not") {
  start();
  snapshot::File file = FakeSource::file("a", 10 * kMiB);
  std::vector<std::string> disowned;
  SECTION("the listing says what is right") {
  }
  SECTION("a digest that was learned is gone with what it was learned from") {
    file.sha256.reset();
    disowned.emplace_back("a");
  }
  const Target wanted = target(file);
  FillPtr fill = fetcher().fill(wanted);
  CHECK(reads_right(fill, {0, 100}));
  REQUIRE(observer.shown(wanted) == Place::kDisk);
  observer.somebody_may_come = false;
  fill->want(Want::kFile);
  REQUIRE(eventually([&] { return fill->progress().state == FillState::kComplete; }));
  fill.reset();
  REQUIRE(eventually([&] { return fetcher().fills().empty(); }));

  observer.somebody_may_come = true;
  CHECK(reads_right(fetcher().fill(wanted), {0, 100}));
  CHECK(observer.disowned() == disowned);
}

TEST_CASE_METHOD(FetchFixture, "read-ahead ends with its last reader, and what came stays") {
  options.part_size = kMiB;
  options.connections_per_blob = 1;
  source->on_chunk([&](const auto&, ByteRange chunk, std::stop_token stop) {
    if (chunk.begin >= kMiB) gate.wait(stop);
  });
  start();
  const Target wanted = target("a", 10 * kMiB);
  FillPtr fill = fetcher().fill(wanted);
  fill->want(Want::kFile);
  REQUIRE(eventually([&] { return gate.arrived() == 1; }));
  fill.reset();
  gate.open();
  REQUIRE(eventually([&] { return fetcher().fills().empty(); }));
  CHECK(source->delivered() == 2 * kMiB);  // the running part was let end

  fill = fetcher().fill(wanted);
  CHECK(fill->progress().written == 2 * kMiB);
  CHECK(fill->progress().want == Want::kDemand);
  CHECK(reads_right(fill, {0, 2 * kMiB}));
  CHECK(source->requests().size() == 2);
}

TEST_CASE_METHOD(FetchFixture,
                 "a fill goes on where the last process stopped; every byte comes once") {
  options.part_size = kMiB;
  source->on_chunk([&](const auto&, ByteRange chunk, std::stop_token stop) {
    if (chunk.begin >= 5 * kMiB) gate.wait(stop);
  });
  start();
  const Target wanted = target("model.gguf", 12 * kMiB + 1);
  FillPtr fill = fetcher().fill(wanted);
  fill->want(Want::kFile);
  PendingRead parked(fill, 11 * kMiB, 10);
  REQUIRE(eventually([&] { return fill->progress().written >= 5 * kMiB; }));
  stop();
  CHECK(parked.failure() == Errc::kCancelled);
  CHECK(fill->progress().state == FillState::kFailed);
  CHECK(PendingRead(fill, 0, 10).failure() == Errc::kCancelled);
  CHECK(observer.failed().empty());
  fill.reset();

  gate.open();
  start();
  fill = fetcher().fill(wanted);
  CHECK(fill->progress().written >= 5 * kMiB);
  fill->want(Want::kFile);
  REQUIRE(eventually([&] { return fill->progress().state == FillState::kComplete; }));
  CHECK(source->not_once(wanted.file()).empty());
}

TEST_CASE_METHOD(FetchFixture,
                 "strict: no byte before the whole is verified, and a read wants it all") {
  options.verify = Verify::kStrict;
  options.part_size = kMiB;
  source->on_chunk([&](const auto&, ByteRange chunk, std::stop_token stop) {
    if (chunk.begin >= 4 * kMiB) gate.wait(stop);
  });
  start();
  const FillPtr fill = this->fill("a", 6 * kMiB);
  PendingRead read(fill, 0, 100);
  REQUIRE(eventually([&] { return fill->progress().written >= 4 * kMiB; }));
  PendingRead present(fill, kMiB, 100);
  CHECK_FALSE(read.done());
  CHECK_FALSE(present.done());
  gate.open();
  CHECK(read.wait() == FakeSource::content("a", {0, 100}));
  CHECK(observer.completed().size() == 1);
  CHECK(present.wait() == FakeSource::content("a", {kMiB, kMiB + 100}));
}

TEST_CASE_METHOD(FetchFixture,
                 "a file that is complete stays open for as long as it is held only") {
  options.checkpoint_interval = std::chrono::hours(1);  // until then the checkpointer has the fill
  start();
  const Target wanted = target("a", 2 * kMiB);
  FillPtr fill = fetcher().fill(wanted);
  fill->want(Want::kFile);
  REQUIRE(eventually([&] { return fill->progress().state == FillState::kComplete; }));
  CHECK(store->in_use(*wanted.file().sha256));
  CHECK(reads_right(fill, {0, 2 * kMiB}));
  fill.reset();
  CHECK(eventually([&] { return !store->in_use(*wanted.file().sha256); }));
}

TEST_CASE_METHOD(FetchFixture, "a fill outlives its blob's removal") {
  start();
  const Target wanted = target("a", kMiB);
  const FillPtr fill = fetcher().fill(wanted);
  fill->want(Want::kFile);
  REQUIRE(eventually([&] { return !observer.completed().empty(); }));
  store->remove(*wanted.file().sha256);
  CHECK(reads_right(fill, {0, kMiB}));
}

TEST_CASE_METHOD(FetchFixture, "a listing that gives known content another size is refused") {
  start();
  const Target right = target("a", kMiB);
  snapshot::File lie = right.file();
  lie.size = 2 * kMiB;
  const auto refusal = [&]() -> std::optional<Errc> {
    try {
      (void)fetcher().fill(target(lie));
    } catch (const Error& error) {
      return error.code();
    }
    return std::nullopt;
  };
  FillPtr fill = fetcher().fill(right);
  CHECK(refusal() == Errc::kInvalid);  // while it is filled
  fill->want(Want::kFile);
  REQUIRE(eventually([&] { return !observer.completed().empty(); }));
  fill.reset();
  REQUIRE(eventually([&] { return fetcher().fills().empty(); }));
  CHECK(refusal() == Errc::kInvalid);  // and when it is there
  CHECK(reads_right(fetcher().fill(right), {0, 100}));
}

TEST_CASE_METHOD(FetchFixture,
                 "a size that no file can have costs neither memory nor the process") {
  options.keep = Keep::kMemoryOnly;
  start();
  snapshot::File file = FakeSource::file("a", 100);
  file.size = (1ULL << 63) - 1;
  CHECK_THROWS_AS(fetcher().fill(target(file)), Error);
  file.size = 64ULL << 40;
  CHECK(PendingRead(fetcher().fill(target(file)), 63ULL << 40, 10).wait().size() == 10);
}

TEST_CASE("what a fill goes by is the digest, else source, path and validator") {
  FetchFixture fixture;
  snapshot::File file = FakeSource::file("a", 10);
  CHECK(fixture.target(file).key() == *file.sha256);
  file.sha256.reset();
  file.validator = "1";
  const Digest key = fixture.target(file).key();
  CHECK(fixture.target(file).key() == key);
  file.validator = "2";
  CHECK(fixture.target(file).key() != key);
  file.validator = "1";
  file.path = "b";
  CHECK(fixture.target(file).key() != key);
}

}  // namespace
}  // namespace weightfs::fetch
