// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/parked_reads.hpp"

#include "store/partial_blob.hpp"

#include <catch2/catch_test_macros.hpp>

#include <map>

namespace weightfs::fetch {
namespace {

constexpr std::uint64_t kBlock = store::kBlockSize;

BlockBytes block(int value) {
  return std::make_shared<const std::vector<std::byte>>(kBlock, static_cast<std::byte>(value));
}

ParkedRead read(ReadId id, ByteRange range) {
  ParkedRead made;
  made.id = id;
  made.range = range;
  return made;
}

BlockBytes nothing(std::uint64_t) {
  return nullptr;
}

TEST_CASE("a read is taken out once, and the others stay in order") {
  ParkedReads parked;
  parked.add(read(1, {0, 10}));
  parked.add(read(2, {10, 20}));
  parked.add(read(3, {20, 30}));
  CHECK(parked.remove(2)->range == ByteRange{10, 20});
  CHECK_FALSE(parked.remove(2));
  CHECK(parked.ranges() == std::vector<ByteRange>{{0, 10}, {20, 30}});
  CHECK(parked.remove_all().size() == 2);
  CHECK(parked.empty());
}

TEST_CASE(
    "a read in memory is complete when it holds its last block, in whatever order they come") {
  ParkedReads parked;
  parked.add(read(1, {10, 2 * kBlock + 5}));
  CHECK(parked.admit(1 << 20, nothing).empty());
  CHECK(parked.attach(2, block(3)).empty());
  CHECK(parked.attach(0, block(1)).empty());
  CHECK(parked.attach(7, block(7)).empty());
  const auto ready = parked.attach(1, block(2));
  REQUIRE(ready.size() == 1);
  std::vector<std::byte> out(2 * kBlock - 5);
  ready[0].copy_held(out);
  CHECK(out.front() == std::byte{1});
  CHECK(out[kBlock - 11] == std::byte{1});
  CHECK(out[kBlock - 10] == std::byte{2});
  CHECK(out.back() == std::byte{3});
}

TEST_CASE("a read whose blocks are there is complete on admission") {
  ParkedReads parked;
  parked.add(read(1, {0, kBlock}));
  CHECK(parked.admit(1 << 20, [](std::uint64_t) { return block(4); }).size() == 1);
  CHECK(parked.empty());
}

TEST_CASE("only as many reads hold blocks as the budget allows, and the oldest always does") {
  ParkedReads parked;
  parked.add(read(1, {0, 4 * kBlock}));
  parked.add(read(2, {4 * kBlock, 5 * kBlock}));
  parked.add(read(3, {5 * kBlock, 6 * kBlock}));
  CHECK(parked.admit(kBlock, nothing).empty());
  CHECK(parked.admitted_ranges() == std::vector<ByteRange>{{0, 4 * kBlock}});
  CHECK(parked.attach(4, block(1)).empty());  // nobody may hold it yet
  REQUIRE(parked.remove(1));
  CHECK(parked.admit(2 * kBlock, nothing).empty());
  CHECK(parked.admitted_ranges().size() == 2);
}

}  // namespace
}  // namespace weightfs::fetch
