// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <utility>

namespace weightfs::fetch {
namespace {

/// Counts the fills that say that they begin with nothing.
class CountingSource final : public source::Source {
 public:
  explicit CountingSource(source::SourcePtr inner) : inner_(std::move(inner)) {}

  [[nodiscard]] snapshot::Snapshot resolve(std::stop_token stop) override {
    return inner_->resolve(std::move(stop));
  }
  void read(const snapshot::File& file, ByteRange range, source::Sink& sink,
            std::stop_token stop) override {
    inner_->read(file, range, sink, std::move(stop));
  }
  void begin_afresh(const snapshot::File&) override { ++afresh; }
  [[nodiscard]] std::optional<Fd> open_local(const snapshot::File& file) override {
    return inner_->open_local(file);
  }
  [[nodiscard]] std::string describe() const override { return inner_->describe(); }

  std::atomic<int> afresh{0};

 private:
  const source::SourcePtr inner_;
};

TEST_CASE_METHOD(FetchFixture, "a source hears of each fill that has none of its file's bytes") {
  const auto counting = std::make_shared<CountingSource>(source);
  Target wanted = target("a", kMiB);
  wanted.source = counting;
  const auto read_some = [&] {
    start();
    const FillPtr fill = fetcher().fill(wanted);
    CHECK(PendingRead(fill, 0, 64 * kKiB).wait() == FakeSource::content("a", {0, 64 * kKiB}));
  };
  read_some();
  CHECK(counting->afresh == 1);
  stop();
  REQUIRE(store->partial_bytes(wanted.key()) > 0);
  read_some();
  CHECK(counting->afresh == 1);
  stop();
  store->discard_partial(wanted.key());
  read_some();
  CHECK(counting->afresh == 2);
}

}  // namespace
}  // namespace weightfs::fetch
