// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/room.hpp"

#include "fetch_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

namespace weightfs::fetch {
namespace {

constexpr std::uint64_t kSize = 4 * kMiB;

class SwitchedRoom final : public Room {
 public:
  void given_back() noexcept override { ++returns; }
  void streamed(const Target&) override { ++passed; }
  bool claim(const Target&, const std::function<void()>& take) override {
    ++claims;
    if (admits) take();
    return admits;
  }
  void write_again(const Target&, const std::function<void()>& write) override { write(); }
  std::atomic<bool> admits{true};
  std::atomic<unsigned> claims{0};
  std::atomic<unsigned> passed{0};
  std::atomic<unsigned> returns{0};
};

class WithRoom : public FetchFixture {
 public:
  WithRoom() { options.room = &room; }
  ~WithRoom() { stop(); }
  SwitchedRoom room;
};

TEST_CASE_METHOD(WithRoom, "a fill asks for room once, and what is there already does not") {
  start();
  const Target wanted = target("a", kSize);
  {
    const FillPtr fill = fetcher().fill(wanted);
    const FillPtr joined = fetcher().fill(wanted);
    fill->want(Want::kFile);
    REQUIRE(eventually([&] { return joined->progress().state == FillState::kComplete; }));
  }
  REQUIRE(eventually([&] { return fetcher().fills().empty(); }));
  CHECK(fetcher().fill(wanted)->progress().state == FillState::kComplete);
  CHECK(room.claims == 1);
}

TEST_CASE_METHOD(WithRoom, "what there is no room for is read past the disk, by the same node") {
  room.admits = false;
  start();
  const Target wanted = target("a", kSize);
  for (int i = 0; i < 2; ++i) {
    const FillPtr fill = fetcher().fill(wanted);
    CHECK(fill->progress().streaming);
    CHECK(reads_right(fill, {0, kMiB}));
  }
  REQUIRE(eventually([&] { return fetcher().fills().empty(); }));
  CHECK(store->usage().partial_bytes == 0);
  CHECK(observer.disowned().empty());
  CHECK(observer.shown(wanted) == Place::kMemory);

  // Bytes that are kept may differ from those that were shown.
  room.admits = true;
  CHECK_FALSE(fetcher().fill(wanted)->progress().streaming);
  CHECK(observer.disowned().size() == 1);
}

TEST_CASE_METHOD(WithRoom,
                 "bytes that were kept for a while are not mixed with others past the disk") {
  start();
  const Target wanted = target("a", kSize);
  CHECK(reads_right(fetcher().fill(wanted), {0, kMiB}));
  REQUIRE(eventually([&] { return fetcher().fills().empty(); }));
  room.admits = false;
  CHECK(reads_right(fetcher().fill(wanted), {0, kMiB}));
  CHECK(observer.disowned().size() == 1);
}

TEST_CASE_METHOD(WithRoom, "where nothing may be read past the disk, no room is an error") {
  options.verify = Verify::kStrict;
  room.admits = false;
  start();
  try {
    static_cast<void>(this->fill("a", kSize));
    FAIL("there was room");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kNoSpace);
  }
}

}  // namespace
}  // namespace weightfs::fetch
