// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/shared_partial.hpp"

#include "fetch_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

namespace weightfs::fetch {
namespace {

const store::PartialKey kKey = Digest::of("key");

TEST_CASE_METHOD(FetchFixture, "whoever leaves last ends it, and the key is free after that") {
  std::vector<std::string> events;
  SharedPartial partial(store->partial(kKey, 100), [&] { events.emplace_back("free"); });
  auto one = partial.use();
  auto two = partial.use();
  REQUIRE(one);
  REQUIRE(two);
  partial.end([&](auto blob) {
    events.emplace_back("end");
    blob->discard();
    return [&] { events.emplace_back("then"); };
  });
  CHECK_FALSE(partial.use());
  partial.release();
  one.reset();
  CHECK(events.empty());
  two.reset();
  CHECK(events == std::vector<std::string>{"end", "free", "then"});
}

TEST_CASE_METHOD(FetchFixture, "without users the end comes at once; a second end is none") {
  unsigned ends = 0;
  unsigned frees = 0;
  SharedPartial partial(store->partial(kKey, 100), [&] { ++frees; });
  for (int i = 0; i < 2; ++i) {
    partial.end([&](auto) {
      ++ends;
      return nullptr;
    });
  }
  CHECK(ends == 1);
  CHECK(frees == 0);
  partial.release();
  partial.release();
  CHECK(frees == 1);
  // The key really is free.
  CHECK(store->partial(kKey, 100));
}

TEST_CASE("a fill without a disk frees its key when it is over") {
  unsigned frees = 0;
  SharedPartial partial(nullptr, [&] { ++frees; });
  CHECK_FALSE(partial.use());
  partial.release();
  CHECK(frees == 1);
}

}  // namespace
}  // namespace weightfs::fetch
