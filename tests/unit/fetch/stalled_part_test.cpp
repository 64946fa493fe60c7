// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors

// Reads that never come back, as of a mounted directory whose server is gone.

#include "fetch_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <utility>

namespace weightfs::fetch {
namespace {

/// Goes on whatever it is told, as the kernel does.
class Deaf final : public source::Source {
 public:
  explicit Deaf(std::shared_ptr<FakeSource> source) : source_(std::move(source)) {}
  snapshot::Snapshot resolve(std::stop_token stop) override { return source_->resolve(stop); }
  void read(const snapshot::File& file, ByteRange range, source::Sink& sink,
            std::stop_token) override {
    struct Count {
      std::atomic<unsigned>& ended;
      ~Count() { ++ended; }
    } count{ended};
    source_->read(file, range, sink, {});
  }
  std::optional<Fd> open_local(const snapshot::File& file) override {
    return source_->open_local(file);
  }
  std::string describe() const override { return "deaf"; }
  bool has_local_files() const noexcept override { return source_->has_local_files(); }

  std::atomic<unsigned> ended{0};  ///< reads

 private:
  std::shared_ptr<FakeSource> source_;
};

TEST_CASE_METHOD(FetchFixture, "a range whose first read never returns is asked for again") {
  options.part_size = kMiB;
  const auto hung = std::make_shared<std::atomic<bool>>(false);
  source->on_chunk([&, hung](const auto&, ByteRange chunk, std::stop_token) {
    if (chunk.begin == 2 * kMiB + 64 * kKiB && !hung->exchange(true)) gate.wait({});
  });
  start();
  Target wanted = target("a", 4 * kMiB);
  const auto deaf = std::make_shared<Deaf>(source);
  wanted.source = deaf;
  const FillPtr fill = fetcher().fill(wanted);
  PendingRead read(fill, 2 * kMiB, kMiB);
  fill->want(Want::kFile);
  // All but what the hung read was to bring.
  REQUIRE(eventually([&] {
    const FillProgress now = fill->progress();
    return now.written == 3 * kMiB + 64 * kKiB && now.connections == 1;
  }));
  REQUIRE(gate.arrived() == 1);
  CHECK_FALSE(read.done());
  clock.advance(options.stall_timeout);
  CHECK(read.wait() == content(wanted, {2 * kMiB, 3 * kMiB}));
  REQUIRE(eventually([&] { return fill->progress().state == FillState::kComplete; }));
  CHECK(observer.failed().empty());
  CHECK(fetcher().counters().retries == 1);
  // Nothing but the rest of that one range came again.
  const auto requests = source->requests();
  CHECK(requests.back().range == ByteRange{2 * kMiB + 64 * kKiB, 3 * kMiB});
  gate.open();
  CHECK(eventually([&] { return deaf->ended == requests.size(); }));
  CHECK(reads_right(fill, {0, 4 * kMiB}));
}

TEST_CASE_METHOD(FetchFixture, "late bytes of a part that was given up change nothing") {
  options.part_size = kMiB;
  const auto hung = std::make_shared<std::atomic<bool>>(false);
  source->on_chunk([&, hung](const auto&, ByteRange chunk, std::stop_token stop) {
    if (chunk.begin == 0 && !hung->exchange(true)) gate.wait({});
    if (chunk.begin >= kMiB) second_gate.wait(stop);  // the fill is not over yet
  });
  start();
  Target wanted = target("a", 2 * kMiB);
  const auto deaf = std::make_shared<Deaf>(source);
  wanted.source = deaf;
  const FillPtr fill = fetcher().fill(wanted);
  PendingRead read(fill, 0, kMiB);
  REQUIRE(eventually([&] { return gate.arrived() == 1; }));
  clock.advance(options.stall_timeout);
  CHECK(read.wait() == content(wanted, {0, kMiB}));
  const std::uint64_t received = fill->progress().received;
  gate.open();
  REQUIRE(eventually([&] { return deaf->ended == source->requests().size(); }));
  CHECK(fill->progress().received == received);
  CHECK(fill->progress().written == kMiB);
  fill->want(Want::kFile);
  second_gate.open();
  REQUIRE(eventually([&] { return fill->progress().state == FillState::kComplete; }));
  CHECK(reads_right(fill, {0, 2 * kMiB}));
}

TEST_CASE_METHOD(FetchFixture,
                 "a file that hangs when it is opened for a clone is asked for in ranges") {
  source->local = [this](const snapshot::File&) -> std::optional<Fd> {
    gate.wait({});
    return std::nullopt;
  };
  start();
  const FillPtr fill = this->fill("a", kMiB);
  fill->want(Want::kFile);
  REQUIRE(eventually([&] { return gate.arrived() == 1; }));
  clock.advance(options.stall_timeout);
  CHECK(eventually([&] { return fill->progress().state == FillState::kComplete; }));
  CHECK(source->not_once(fill->target().file()).empty());
  gate.open();
}

}  // namespace
}  // namespace weightfs::fetch
