// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/token_bucket.hpp"

#include <catch2/catch_test_macros.hpp>

namespace weightfs::fetch {
namespace {

using namespace std::chrono_literals;

constexpr TokenBucket::TimePoint kStart = TokenBucket::TimePoint() + 1h;

TEST_CASE("an unused bucket gives its burst at once, and then one byte's time for each byte") {
  TokenBucket bucket(1000);  // a byte per millisecond, 50 at once
  CHECK(bucket.ready_at() <= kStart);
  bucket.take(50, kStart);
  CHECK(bucket.ready_at() == kStart);
  bucket.take(1, kStart);
  CHECK(bucket.ready_at() == kStart + 1ms);
  bucket.take(20, kStart + 1ms);
  CHECK(bucket.ready_at() == kStart + 21ms);
}

TEST_CASE("what was not used is kept for no longer than the burst") {
  TokenBucket bucket(1000);
  bucket.take(51, kStart);
  bucket.take(51, kStart + 10h);
  CHECK(bucket.ready_at() == kStart + 10h + 1ms);
}

TEST_CASE("more than the burst passes at once, and those that come next wait for it") {
  TokenBucket bucket(1000);
  bucket.take(10'050, kStart);
  CHECK(bucket.ready_at() == kStart + 10s);
}

TEST_CASE("no byte is lost to rounding") {
  TokenBucket bucket(7'000'000'003);
  auto now = kStart;
  std::uint64_t taken = 0;
  while (taken < 70'000'000'030) {  // ten seconds' worth, in pieces whose time is no whole number
    now = std::max(now, bucket.ready_at());
    bucket.take(333'333, now);
    taken += 333'333;
  }
  const auto last = std::chrono::nanoseconds(333'333 * 1'000'000'000ULL / 7'000'000'003);
  CHECK(now - kStart >= 10s - TokenBucket::kBurst - last - 1us);
  CHECK(now - kStart <= 10s - TokenBucket::kBurst + 1us);
}

TEST_CASE("without a rate everything passes") {
  TokenBucket bucket(0);
  bucket.take(~0ULL, kStart);
  CHECK(bucket.ready_at() == TokenBucket::TimePoint());
}

TEST_CASE("another rate keeps what is owed, in bytes") {
  TokenBucket bucket(1000);
  bucket.take(10'050, kStart);
  bucket.set_rate(100'000, kStart);
  CHECK(bucket.ready_at() == kStart + 100ms);
  bucket.set_rate(0, kStart);
  CHECK(bucket.ready_at() == TokenBucket::TimePoint());
  bucket.set_rate(1000, kStart);
  bucket.take(51, kStart);
  CHECK(bucket.ready_at() == kStart + 1ms);
}

}  // namespace
}  // namespace weightfs::fetch
