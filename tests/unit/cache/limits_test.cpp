// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cache/limits.hpp"

#include "base/error.hpp"

#include <catch2/catch_test_macros.hpp>

#include <span>
#include <vector>

namespace weightfs::cache {
namespace {

store::StoreUsage usage(std::uint64_t ours, std::uint64_t free) {
  return {.bytes = ours, .capacity = 1000, .free = free};
}

/// Of a store on one disk.
policy::Budget budget(const Limits& limits, const store::StoreUsage& usage) {
  const store::VolumeStatus one{.directory = {},
                                .state = store::VolumeState::kUsable,
                                .error = {},
                                .filesystem = 0,
                                .usage = usage};
  return cache::budget(limits, std::span(&one, 1));
}

TEST_CASE("shares read as sizes or as percent, and are written the same") {
  CHECK(parse_share("90%") == Share{.percent = 90});
  CHECK(parse_share("0%") == Share{});
  CHECK(parse_share("1GiB") == Share{.bytes = 1 << 30});
  CHECK(exact_share(parse_share("90%")) == "90%");
  CHECK(exact_share(parse_share("10MiB")) == "10MiB");
  for (const char* bad : {"%", "101%", "1.5%", "-1%", "5 %", "x", "", "5%%"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_share(bad), Error);
  }
  CHECK(Share{.percent = 90}.of(1000) == 900);
  CHECK(Share{.percent = 33}.of(10) == 3);
  CHECK(Share{.percent = 100}.of(~0ULL) == ~0ULL);
}

TEST_CASE("the capacity counts while the disk is ours") {
  const Limits limits{.capacity = {.percent = 50}, .min_free = {.percent = 5}};
  const policy::Budget found = budget(limits, usage(200, 800));
  CHECK(found.capacity == 500);
  CHECK(found.used == 200);
  CHECK(found.probation == 100);
}

TEST_CASE("what others take from the disk is not ours") {
  const Limits limits{.capacity = {.percent = 90}, .min_free = {.percent = 10}};
  CHECK(budget(limits, usage(200, 300)).capacity == 400);  // 300 free, of which 100 are to stay
  CHECK(budget(limits, usage(200, 50)).capacity == 150);   // 50 of ours have to go
  CHECK(budget(limits, usage(20, 10)).capacity == 0);      // and that is not even enough
}

TEST_CASE("what is on its way, and what is evicted but open, is in use") {
  store::StoreUsage busy = usage(100, 500);
  busy.partial_bytes = 30;
  busy.evicted_open_bytes = 7;
  CHECK(budget({}, busy).used == 137);
}

TEST_CASE("a capacity above the disk is the disk") {
  const Limits limits{.capacity = {.bytes = 5000}, .min_free = {}, .probation = {.bytes = 9000}};
  const policy::Budget found = budget(limits, usage(0, 1000));
  CHECK(found.capacity == 1000);
  CHECK(found.probation == 1000);
}

/// On a filesystem of its own, of 1000 bytes, but for what is said otherwise.
store::VolumeStatus volume(std::uint64_t filesystem, std::uint64_t ours, std::uint64_t free,
                           store::VolumeState state = store::VolumeState::kUsable) {
  return {.directory = {},
          .state = state,
          .error = {},
          .filesystem = filesystem,
          .usage = usage(ours, free)};
}

TEST_CASE("the budget of several disks is the sum, each with its own shares") {
  const Limits limits{.capacity = {.percent = 50}, .min_free = {.percent = 10}};
  const std::vector volumes{volume(1, 200, 800), volume(2, 300, 150)};
  const policy::Budget found = cache::budget(limits, volumes);
  CHECK(found.capacity == 500 + 350);  // 150 free on the second one, of which 100 are to stay
  CHECK(found.used == 500);
  CHECK(found.probation == 200);
  CHECK(cache::budget(limits, std::span<const store::VolumeStatus>()).capacity == 0);
}

TEST_CASE("a capacity in bytes is that of all disks") {
  const Limits limits{.capacity = {.bytes = 1200}, .min_free = {.bytes = 100}};
  CHECK(cache::budget(limits, std::vector{volume(1, 0, 1000), volume(2, 0, 1000)}).capacity ==
        1200);
  CHECK(cache::budget(limits, std::vector{volume(1, 0, 400), volume(2, 0, 500)}).capacity == 700);
  CHECK(cache::budget(limits, std::vector{volume(1, 0, 1000), volume(2, 0, 1000)}).probation ==
        240);
}

TEST_CASE("directories on one filesystem share its room") {
  const Limits limits{.capacity = {.percent = 50}, .min_free = {}};
  const policy::Budget found =
      cache::budget(limits, std::vector{volume(1, 100, 700), volume(1, 200, 700)});
  CHECK(found.capacity == 500);
  CHECK(found.used == 300);
  // Of a directory that has gone nobody can say how large its filesystem is.
  store::VolumeStatus gone = volume(1, 200, 0, store::VolumeState::kSetAside);
  gone.usage.capacity = 0;
  CHECK(cache::budget(limits, std::vector{volume(1, 100, 700), gone}).capacity == 500);
}

TEST_CASE("a disk that is set aside has no room, and what is on it is no burden") {
  using enum store::VolumeState;
  const Limits limits{.capacity = {.percent = 50}, .min_free = {}};
  const policy::Budget found =
      cache::budget(limits, std::vector{volume(1, 100, 900), volume(2, 300, 700, kSetAside),
                                        volume(3, 0, 0, kNotOpened)});
  CHECK(found.capacity - found.used == 400);
  CHECK(found.capacity == 800);
  CHECK(found.probation == 100);
}

TEST_CASE("a file has to fit on one disk") {
  using enum store::VolumeState;
  const Limits limits{.capacity = {.percent = 80}, .min_free = {.bytes = 100}};
  const std::vector volumes{volume(1, 500, 500), volume(2, 600, 150),
                            volume(3, 0, 1000, kSetAside)};
  CHECK(headroom(limits, volumes) == 300);
  CHECK(largest_file(limits, volumes) == 800);
  CHECK(headroom({.capacity = {.bytes = 1200}, .min_free = {}}, volumes) == 100);
  CHECK(largest_file({.capacity = {.bytes = 600}, .min_free = {}}, volumes) == 600);
  CHECK(headroom(limits, {}) == 0);
}

TEST_CASE("a capacity above all disks is told") {
  const std::vector volumes{volume(1, 0, 1000), volume(2, 0, 1000)};
  CHECK(capacity_excess({.capacity = {.bytes = 2000}}, volumes).empty());
  CHECK(capacity_excess({}, volumes).empty());
  CHECK(capacity_excess({.capacity = {.bytes = 2048}}, volumes) ==
        "the capacity of 2KiB is more than the disk has; it is taken as 2.00 kB");
  CHECK(capacity_excess({.capacity = {.bytes = 2048}}, {}).empty());
}

}  // namespace
}  // namespace weightfs::cache
