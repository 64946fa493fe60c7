// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/memory_window.hpp"

#include <catch2/catch_test_macros.hpp>

namespace weightfs::fetch {
namespace {

std::vector<std::byte> block(std::size_t size, int value) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

TEST_CASE("the least recently used blocks go first") {
  MemoryWindow window(300);
  MemoryWindow::Stream stream(window);
  for (int i = 0; i < 3; ++i) stream.insert(static_cast<std::uint64_t>(i), block(100, i));
  REQUIRE(stream.find(0));
  stream.insert(3, block(100, 3));
  CHECK(stream.find(0));
  CHECK_FALSE(stream.find(1));
  CHECK(stream.find(3)->at(0) == std::byte{3});
  CHECK(window.bytes() == 300);
}

TEST_CASE("blocks that a reader holds count, and stay for it") {
  MemoryWindow window(200);
  MemoryWindow::Stream stream(window);
  const BlockBytes held = stream.insert(0, block(100, 7));
  stream.insert(1, block(100, 1));
  stream.insert(2, block(100, 2));
  CHECK_FALSE(stream.find(0));
  CHECK_FALSE(stream.find(1));
  CHECK(stream.find(2));
  CHECK(held->at(99) == std::byte{7});
  CHECK(window.bytes() == 200);
}

TEST_CASE("streams do not see each other's blocks, and take theirs with them") {
  MemoryWindow window(1000);
  MemoryWindow::Stream one(window);
  one.insert(0, block(100, 1));
  {
    MemoryWindow::Stream two(window);
    CHECK_FALSE(two.find(0));
    two.insert(0, block(100, 2));
    CHECK(one.share() == 500);
    CHECK(window.bytes() == 200);
  }
  CHECK(one.share() == 1000);
  CHECK(window.bytes() == 100);
  CHECK(one.find(0)->at(0) == std::byte{1});
}

TEST_CASE("a block may come twice") {
  MemoryWindow window(1000);
  MemoryWindow::Stream stream(window);
  stream.insert(0, block(100, 1));
  stream.insert(0, block(100, 1));
  CHECK(window.bytes() == 100);
}

TEST_CASE("a held block outlives its window") {
  BlockBytes held;
  {
    MemoryWindow window(1000);
    MemoryWindow::Stream stream(window);
    held = stream.insert(0, block(10, 9));
  }
  CHECK(held->at(0) == std::byte{9});
}

}  // namespace
}  // namespace weightfs::fetch
