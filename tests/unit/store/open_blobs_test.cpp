// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/open_blobs.hpp"

#include <catch2/catch_test_macros.hpp>

#include <fcntl.h>
#include <optional>
#include <thread>
#include <vector>

using namespace weightfs;
using store::OpenBlobs;

namespace {

std::shared_ptr<const Fd> open_one(OpenBlobs& blobs, const Digest& digest, std::uint64_t size) {
  return OpenBlobs::attach(blobs.hold(digest, size), Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
}

}  // namespace

TEST_CASE("evicted bytes count once, from the eviction to the last holder's end") {
  OpenBlobs blobs;
  const Digest digest = Digest::of("a");
  auto first = open_one(blobs, digest, 100);
  auto second = open_one(blobs, digest, 100);
  const auto copy = second;
  CHECK(blobs.evicted_bytes() == 0);
  blobs.evicted(digest);
  CHECK(blobs.evicted_bytes() == 100);
  blobs.evicted(digest);
  CHECK(blobs.evicted_bytes() == 100);
  first.reset();
  second.reset();
  CHECK(blobs.evicted_bytes() == 100);
}

TEST_CASE("a blob that nobody has open costs nothing when it is evicted") {
  OpenBlobs blobs;
  blobs.evicted(Digest::of("a"));
  open_one(blobs, Digest::of("a"), 5).reset();
  blobs.evicted(Digest::of("a"));
  CHECK(blobs.evicted_bytes() == 0);
}

TEST_CASE("a digest that is published again has bytes of its own") {
  OpenBlobs blobs;
  const Digest digest = Digest::of("a");
  auto before = open_one(blobs, digest, 10);
  blobs.evicted(digest);
  auto after = open_one(blobs, digest, 10);
  CHECK(blobs.evicted_bytes() == 10);
  after.reset();
  CHECK(blobs.evicted_bytes() == 10);
  after = open_one(blobs, digest, 10);
  blobs.evicted(digest);
  CHECK(blobs.evicted_bytes() == 20);
  before.reset();
  CHECK(blobs.evicted_bytes() == 10);
  after.reset();
  CHECK(blobs.evicted_bytes() == 0);
}

TEST_CASE("a holder may outlive the store") {
  std::optional<OpenBlobs> blobs(std::in_place);
  const auto held = open_one(*blobs, Digest::of("a"), 10);
  blobs.reset();
  CHECK(::fcntl(held->value(), F_GETFD) >= 0);
}

TEST_CASE("holders and evictions on many threads end at zero") {
  OpenBlobs blobs;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&] {
        for (int i = 0; i < 500; ++i) {
          const auto held = open_one(blobs, Digest::of(std::to_string(i % 7)), 10);
          if (i % 3 == 0) blobs.evicted(Digest::of(std::to_string(i % 7)));
        }
      });
    }
  }
  CHECK(blobs.evicted_bytes() == 0);
}
