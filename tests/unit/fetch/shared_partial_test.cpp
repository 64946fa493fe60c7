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
  SharedPartial partial(store->partial(kKey, 100),
                        {.free = [&] { events.emplace_back("free"); },
                         .given_back = [&] { events.emplace_back("given back"); }});
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

TEST_CASE_METHOD(FetchFixture, "what is not kept is told to be gone once it is") {
  for (const auto ending : {SharedPartial::Ending::kKeep, SharedPartial::Ending::kDiscard,
                            SharedPartial::Ending::kQuarantine}) {
    unsigned given_back = 0;
    SharedPartial partial(store->partial(kKey, 100),
                          {.free = [] {}, .given_back = [&] { ++given_back; }});
    auto user = partial.use();
    partial.close(ending, "wrong", Log::silent());
    CHECK(given_back == 0);
    user.reset();
    CHECK(given_back == (ending == SharedPartial::Ending::kKeep ? 0 : 1));
    partial.release();
  }
}

TEST_CASE_METHOD(FetchFixture, "without users the end comes at once; a second end is none") {
  unsigned ends = 0;
  unsigned frees = 0;
  SharedPartial partial(store->partial(kKey, 100), {.free = [&] { ++frees; }, .given_back = [] {}});
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
  SharedPartial partial(nullptr, {.free = [&] { ++frees; }, .given_back = [] {}});
  CHECK_FALSE(partial.use());
  partial.release();
  CHECK(frees == 1);
}

}  // namespace
}  // namespace weightfs::fetch
