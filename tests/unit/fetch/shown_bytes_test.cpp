// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

namespace weightfs::fetch {
namespace {

constexpr std::uint64_t kSize = 4 * kMiB;

std::optional<Place> shown_when_answered(FetchFixture& fixture, const Target& target) {
  const FillPtr fill = fixture.fetcher().fill(target);
  std::promise<std::optional<Place>> answered;
  fill->read(0, kKiB,
             [&](const ReadResult&) { answered.set_value(fixture.observer.shown(target)); });
  return answered.get_future().get();
}

TEST_CASE_METHOD(FetchFixture,
                 "that readers get bytes nothing has proven is known before they do") {
  start();
  const Target kept = target("kept.bin", kSize);
  CHECK(shown_when_answered(*this, kept) == Place::kDisk);
  fetcher().set_keep(Keep::kMemoryOnly);
  CHECK(shown_when_answered(*this, target("streamed.bin", kSize)) == Place::kMemory);
}

TEST_CASE_METHOD(FetchFixture, "once they are proven there is nothing to remember") {
  start();
  const Target whole = target("whole.bin", kSize);
  const FillPtr fill = fetcher().fill(whole);
  fill->want(Want::kFile);
  CHECK(reads_right(fill, {0, kKiB}));
  CHECK(eventually([&] { return fill->progress().state == FillState::kComplete; }));
  CHECK(observer.shown(whole) == std::nullopt);
  CHECK(observer.disowned().empty());
}

TEST_CASE_METHOD(FetchFixture, "bytes that are held until they are proven are not shown") {
  options.verify = Verify::kStrict;
  start();
  CHECK(shown_when_answered(*this, target("strict.bin", kSize)) == std::nullopt);
}

TEST_CASE_METHOD(FetchFixture, "a fill that goes on with what was shown disowns nothing") {
  start();
  const Target file = target("resumed.bin", kSize);
  CHECK(shown_when_answered(*this, file) == Place::kDisk);
  stop();
  start();
  CHECK(reads_right(fetcher().fill(file), {0, kSize}));
  CHECK(observer.disowned().empty());
}

TEST_CASE_METHOD(FetchFixture, "a fill that begins without what was shown disowns it first") {
  start();
  const Target file = target("lost.bin", kSize);
  CHECK(shown_when_answered(*this, file) == Place::kDisk);
  stop();
  store->discard_partial(file.key());
  start();
  const FillPtr fill = fetcher().fill(file);
  CHECK(observer.disowned() == std::vector<std::string>{"lost.bin"});
  CHECK(reads_right(fill, {0, kSize}));
}

}  // namespace
}  // namespace weightfs::fetch
