// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/warmer.hpp"

#include "fetch_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

namespace weightfs::fetch {
namespace {

snapshot::SnapshotPtr snapshot_of(std::vector<snapshot::File> files) {
  return std::make_shared<const snapshot::Snapshot>("https://host/model/", "1", std::move(files));
}

snapshot::SnapshotPtr model() {
  return snapshot_of({FakeSource::file("config.json", 700),
                      FakeSource::file("model-10.safetensors", 9 * kMiB),
                      FakeSource::file("model-2.safetensors", 9 * kMiB),
                      FakeSource::file("model-1.safetensors", 9 * kMiB),
                      FakeSource::file("empty", 0), FakeSource::file("tokenizer.json", 300'000)});
}

TEST_CASE("small files come first, then the others in natural order") {
  const auto snapshot = model();
  std::vector<std::string> order;
  for (const std::size_t index : warm_order(*snapshot)) {
    order.push_back(snapshot->files()[index].path);
  }
  CHECK(order == std::vector<std::string>{"config.json", "empty", "tokenizer.json",
                                          "model-1.safetensors", "model-2.safetensors",
                                          "model-10.safetensors"});
}

TEST_CASE_METHOD(FetchFixture, "a warm brings every file once, in order, and says how far it is") {
  start();
  Warmer warmer(fetcher(), *store, 1, Log::silent());
  const auto snapshot = model();
  CHECK_FALSE(warmer.progress(snapshot->key()));
  warmer.start(snapshot, source, Want::kBackground);
  REQUIRE(eventually([&] { return !warmer.progress(snapshot->key())->running; }));
  const WarmProgress progress = *warmer.progress(snapshot->key());
  CHECK_FALSE(progress.error);
  CHECK(progress.files == 6);
  CHECK(progress.files_complete == 6);
  CHECK(progress.verified == snapshot->bytes());
  CHECK(progress.written == snapshot->bytes());
  for (const snapshot::File& file : snapshot->files()) {
    CHECK(source->not_once(file).empty());
    CHECK(store->contains(*file.sha256));
  }
  const std::vector<std::string> completed = observer.completed();
  CHECK(std::vector(completed.end() - 3, completed.end()) ==
        std::vector<std::string>{"model-1.safetensors", "model-2.safetensors",
                                 "model-10.safetensors"});

  warmer.start(snapshot, source, Want::kBackground);
  REQUIRE(eventually([&] { return !warmer.progress(snapshot->key())->running; }));
  CHECK(warmer.progress(snapshot->key())->files_complete == 6);
  CHECK(source->delivered() == snapshot->bytes());
}

TEST_CASE_METHOD(FetchFixture, "only a few large files are filled side by side") {
  options.connections_per_blob = 2;
  source->on_chunk([this](const auto&, ByteRange, std::stop_token stop) { gate.wait(stop); });
  start();
  Warmer warmer(fetcher(), *store, 2, Log::silent());
  const auto snapshot =
      snapshot_of({FakeSource::file("a", 9 * kMiB), FakeSource::file("b", 9 * kMiB),
                   FakeSource::file("c", 9 * kMiB)});
  warmer.start(snapshot, source, Want::kBackground);
  REQUIRE(eventually([&] { return gate.arrived() == 4; }));
  CHECK(fetcher().fills().size() == 2);
  gate.open();
  CHECK(eventually([&] { return warmer.progress(snapshot->key())->files_complete == 3; }));
}

TEST_CASE_METHOD(FetchFixture, "a loader's warm overtakes, and asking again joins") {
  source->on_chunk([this](const auto&, ByteRange, std::stop_token stop) { gate.wait(stop); });
  start();
  Warmer warmer(fetcher(), *store, 1, Log::silent());
  const auto snapshot = snapshot_of({FakeSource::file("a", 9 * kMiB)});
  warmer.start(snapshot, source, Want::kBackground);
  REQUIRE(eventually([&] { return gate.arrived() > 0; }));
  CHECK(fetcher().fills()[0]->progress().want == Want::kBackground);
  warmer.start(snapshot, source, Want::kFile);
  CHECK(fetcher().fills()[0]->progress().want == Want::kFile);
  gate.open();
  CHECK(eventually([&] { return observer.completed().size() == 1; }));
}

TEST_CASE_METHOD(FetchFixture, "trouble with one file is named, and the others come all the same") {
  source->on_chunk([](const snapshot::File& file, ByteRange, std::stop_token) {
    if (file.path == "a") throw Error(Errc::kNotFound, "404");
  });
  start();
  Warmer warmer(fetcher(), *store, 1, Log::silent());
  const auto snapshot = snapshot_of({FakeSource::file("a", 100), FakeSource::file("b", 9 * kMiB)});
  warmer.start(snapshot, source, Want::kBackground);
  REQUIRE(eventually([&] { return !warmer.progress(snapshot->key())->running; }));
  WarmProgress progress = *warmer.progress(snapshot->key());
  REQUIRE(progress.error);
  CHECK(progress.error->code() == Errc::kNotFound);
  CHECK(std::string(progress.error->what()).starts_with("a: "));
  CHECK(progress.files_complete == 1);
  // Asked again, it tries again.
  source->on_chunk(nullptr);
  warmer.start(snapshot, source, Want::kBackground);
  CHECK(eventually([&] {
    progress = *warmer.progress(snapshot->key());
    return progress.files_complete == 2 && !progress.error;
  }));
}

TEST_CASE_METHOD(FetchFixture, "a source out of reach ends the warm at its first file") {
  source->on_chunk([this](const auto&, ByteRange, std::stop_token stop) { gate.wait(stop); });
  start();
  Warmer warmer(fetcher(), *store, 1, Log::silent());
  const auto snapshot =
      snapshot_of({FakeSource::file("a", 9 * kMiB), FakeSource::file("b", 9 * kMiB)});
  warmer.start(snapshot, source, Want::kBackground);
  REQUIRE(eventually([&] { return gate.arrived() > 0; }));
  clock.advance(options.deadline);
  REQUIRE(eventually([&] { return !warmer.progress(snapshot->key())->running; }));
  CHECK(warmer.progress(snapshot->key())->error->code() == Errc::kTimedOut);
  CHECK(warmer.progress(snapshot->key())->files_complete == 0);
}

TEST_CASE_METHOD(FetchFixture, "a stopped warm lets go, and what came stays") {
  options.part_size = kMiB;
  options.connections_per_blob = 1;
  source->on_chunk([this](const auto&, ByteRange chunk, std::stop_token stop) {
    if (chunk.begin >= 2 * kMiB) gate.wait(stop);
  });
  start();
  Warmer warmer(fetcher(), *store, 1, Log::silent());
  const auto snapshot = snapshot_of({FakeSource::file("a", 9 * kMiB)});
  warmer.start(snapshot, source, Want::kBackground);
  REQUIRE(eventually([&] { return gate.arrived() == 1; }));
  CHECK(warmer.progress(snapshot->key())->written == 2 * kMiB);
  warmer.stop(snapshot->key());
  CHECK_FALSE(warmer.progress(snapshot->key())->running);
  gate.open();
  CHECK(eventually([&] { return fetcher().fills().empty(); }));
  CHECK(source->delivered() == 3 * kMiB);
  warmer.start(snapshot, source, Want::kBackground);
  CHECK(eventually([&] { return warmer.progress(snapshot->key())->files_complete == 1; }));
  CHECK(source->delivered() == 9 * kMiB);
}

TEST_CASE_METHOD(FetchFixture, "a warm that the disk cannot take says so") {
  options.keep = Keep::kMemoryOnly;
  start();
  Warmer warmer(fetcher(), *store, 1, Log::silent());
  const auto snapshot = snapshot_of({FakeSource::file("a", kMiB)});
  warmer.start(snapshot, source, Want::kBackground);
  REQUIRE(eventually([&] { return !warmer.progress(snapshot->key())->running; }));
  CHECK(warmer.progress(snapshot->key())->error->code() == Errc::kNoSpace);
}

TEST_CASE_METHOD(FetchFixture, "a warm that is over keeps nothing but its outcome") {
  start();
  Warmer warmer(fetcher(), *store, 1, Log::silent());
  auto snapshot = snapshot_of({FakeSource::file("a", kMiB)});
  const std::weak_ptr watched = snapshot;
  const Digest key = snapshot->key();
  SECTION("it is done") {
    warmer.start(snapshot, source, Want::kBackground);
    REQUIRE(eventually([&] { return warmer.progress(key)->files_complete == 1; }));
  }
  SECTION("it was stopped") {
    source->on_chunk([this](const auto&, ByteRange, std::stop_token stop) { gate.wait(stop); });
    warmer.start(snapshot, source, Want::kBackground);
    REQUIRE(eventually([&] { return gate.arrived() > 0; }));
    warmer.stop(key);
    gate.open();
  }
  snapshot.reset();
  CHECK(eventually([&] { return watched.expired(); }));
  REQUIRE(warmer.progress(key));
  CHECK_FALSE(warmer.progress(key)->running);
}

TEST_CASE_METHOD(FetchFixture, "a listing that lies about a size does not end the process") {
  start();
  Warmer warmer(fetcher(), *store, 1, Log::silent());
  snapshot::File known = FakeSource::file("a", kMiB);
  const auto honest = snapshot_of({known});
  warmer.start(honest, source, Want::kBackground);
  REQUIRE(eventually([&] { return !warmer.progress(honest->key())->running; }));
  SECTION("of what is there") {
    known.size = 17;
  }
  SECTION("of what no disk could hold") {
    known.size = (1ULL << 63) - 1;
    known.sha256 = Digest::of("unknown");
  }
  const auto lying = snapshot_of({known});
  warmer.start(lying, source, Want::kBackground);
  REQUIRE(eventually([&] { return !warmer.progress(lying->key())->running; }));
  CHECK(warmer.progress(lying->key())->files_complete == 0);
  CHECK(warmer.progress(lying->key())->error);
}

TEST_CASE_METHOD(FetchFixture, "what is due first is fetched first, whenever it was asked for") {
  options.connections = 1;
  options.part_size = kMiB;
  source->on_chunk([this](const auto&, ByteRange, std::stop_token stop) { gate.wait(stop); });
  start();
  Warmer warmer(fetcher(), *store, 2, Log::silent());
  const auto make = [](const std::string& name) {
    return snapshot_of({FakeSource::file(name, 9 * kMiB)});
  };
  warmer.start(make("whenever"), source, Want::kBackground);
  REQUIRE(eventually([&] { return gate.arrived() == 1; }));
  warmer.start(make("late"), source, Want::kBackground, {.due = 300});
  warmer.start(make("second"), source, Want::kBackground, {.due = 200, .priority = 0});
  warmer.start(make("first"), source, Want::kBackground, {.due = 200, .priority = 1});
  REQUIRE(eventually([&] { return fetcher().fills().size() == 4; }));
  gate.open();
  REQUIRE(eventually([&] { return observer.completed().size() == 4; }));
  std::vector<std::string> order;
  for (const FakeSource::Request& request : source->requests()) {
    if (order.empty() || order.back() != request.path) order.push_back(request.path);
  }
  CHECK(order == std::vector<std::string>{"whenever", "first", "second", "late", "whenever"});
}

TEST_CASE_METHOD(FetchFixture, "a file that is due may have every connection") {
  options.connections = 6;
  options.connections_per_blob = 2;
  options.part_size = kMiB;
  source->on_chunk([this](const auto&, ByteRange, std::stop_token stop) { gate.wait(stop); });
  start();
  Warmer warmer(fetcher(), *store, 2, Log::silent());
  const auto later = snapshot_of({FakeSource::file("later", 9 * kMiB)});
  const auto sooner = snapshot_of({FakeSource::file("sooner", 9 * kMiB)});
  warmer.start(sooner, source, Want::kBackground, {.due = 100});
  REQUIRE(eventually([&] { return gate.arrived() == 6; }));
  warmer.start(later, source, Want::kBackground, {.due = 200});
  REQUIRE(eventually([&] { return fetcher().fills().size() == 2; }));
  for (const auto& request : source->requests()) CHECK(request.path == "sooner");
  gate.open();
  CHECK(eventually([&] { return observer.completed().size() == 2; }));
}

TEST_CASE_METHOD(FetchFixture, "what is not due any more stops, unless somebody wants it anyway") {
  source->on_chunk([this](const auto&, ByteRange, std::stop_token stop) { gate.wait(stop); });
  start();
  Warmer warmer(fetcher(), *store, 2, Log::silent());
  const auto leased = snapshot_of({FakeSource::file("leased", 9 * kMiB)});
  const auto both = snapshot_of({FakeSource::file("both", 9 * kMiB)});
  warmer.start(leased, source, Want::kBackground, {.due = 100});
  warmer.start(both, source, Want::kBackground, {.due = 100});
  warmer.start(both, source, Want::kBackground);
  REQUIRE(eventually([&] { return fetcher().fills().size() == 2; }));
  warmer.excuse(leased->key());
  warmer.excuse(both->key());
  CHECK_FALSE(warmer.progress(leased->key())->running);
  CHECK(warmer.progress(both->key())->running);
  gate.open();
  CHECK(eventually([&] { return warmer.progress(both->key())->files_complete == 1; }));
}

TEST_CASE_METHOD(FetchFixture, "hundreds of small files come quickly") {
  start();
  Warmer warmer(fetcher(), *store, 4, Log::silent());
  std::vector<snapshot::File> files;
  for (int i = 0; i < 300; ++i) files.push_back(FakeSource::file("f" + std::to_string(i), 1000));
  const auto snapshot = snapshot_of(std::move(files));
  warmer.start(snapshot, source, Want::kBackground);
  REQUIRE(eventually([&] { return !warmer.progress(snapshot->key())->running; }));
  CHECK(warmer.progress(snapshot->key())->files_complete == 300);
}

}  // namespace
}  // namespace weightfs::fetch
