// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/block_map.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "store_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <fcntl.h>
#include <algorithm>
#include <thread>

using namespace weightfs;
using namespace weightfs::store;

namespace {

constexpr std::uint64_t kSize = 10 * kBlockSize + 100;

struct Maps {
  TemporaryDirectory directory;
  Fd data = open_file(directory.path() / "data", O_RDWR | O_CREAT, 0600);

  [[nodiscard]] BlockMap::Target target(std::string boot_id = "boot-1") const {
    return {.path = directory.path() / "map",
            .key = Digest::of("key"),
            .size = kSize,
            .boot_id = std::move(boot_id)};
  }
};

std::string bytes_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.bytes().data()), Digest::kSize};
}

std::size_t count(const std::vector<bool>& flags) {
  return static_cast<std::size_t>(std::count(flags.begin(), flags.end(), true));
}

}  // namespace

TEST_CASE("only blocks that lie entirely within a range are marked, and a short last one") {
  const Maps maps;
  const auto map = BlockMap::create(maps.target());
  CHECK(map->written_bytes() == 0);
  CHECK(map->written_blocks().size() == 11);

  map->set_written({1, kBlockSize});
  map->set_written({0, kBlockSize - 1});
  map->set_written({5, 5});
  CHECK(map->written_bytes() == 0);
  map->set_written({kBlockSize - 1, 3 * kBlockSize + 1});
  CHECK(map->written_blocks() == std::vector<bool>{false, true, true, false, false, false, false,
                                                   false, false, false, false});
  CHECK(map->written_bytes() == 2 * kBlockSize);
  map->set_written({10 * kBlockSize, kSize - 1});
  CHECK(map->written_bytes() == 2 * kBlockSize);
  map->set_written({10 * kBlockSize, kSize});
  CHECK(map->written_bytes() == 2 * kBlockSize + 100);
  map->set_written({0, kSize});
  map->set_written({0, kSize});
  CHECK(map->written_bytes() == kSize);
  CHECK(count(map->written_blocks()) == 11);
  CHECK_THROWS_AS(map->set_written({0, kSize + 1}), Error);
}

TEST_CASE("an empty blob has no blocks and is complete") {
  const Maps maps;
  BlockMap::Target target = maps.target();
  target.size = 0;
  const auto map = BlockMap::create(target);
  CHECK(map->written_bytes() == 0);
  CHECK(map->written_blocks().empty());
  map->set_written({0, 0});
  map->checkpoint(maps.data);
  const auto loaded = BlockMap::load(target);
  REQUIRE(loaded);
  CHECK(loaded->size() == 0);
}

TEST_CASE("the map has the bytes that FORMAT.md shows") {
  const Maps maps;
  const auto map = BlockMap::create(maps.target());
  map->set_written({0, kBlockSize});
  map->checkpoint(maps.data);
  map->set_written({9 * kBlockSize, kSize});
  const std::string bytes = read_text(maps.target().path);
  REQUIRE(bytes.size() == 128 + 2 + 2);
  std::string header = "wfs map\n";
  header += std::string("\x01\0\0\0", 4);            // version
  header += std::string("\0\0\x01\0", 4);            // 65536
  header += std::string("\x64\0\x0A\0\0\0\0\0", 8);  // 655460
  header += bytes_of(Digest::of("key"));
  header += "boot-1" + std::string(34, '\0');
  header += bytes_of(Digest::of(header));
  CHECK(bytes.substr(0, 128) == header);
  CHECK(bytes.substr(128) == std::string("\x01\x06\x01\x00", 4));
}

TEST_CASE("in the same boot every written block is believed, without any flush") {
  const Maps maps;
  {
    const auto map = BlockMap::create(maps.target());
    map->set_written({kBlockSize, 4 * kBlockSize});
  }
  CHECK(BlockMap::peek(maps.target())->believed_bytes == 3 * kBlockSize);
  const auto map = BlockMap::load(maps.target());
  REQUIRE(map);
  CHECK(map->size() == kSize);
  CHECK(map->written_bytes() == 3 * kBlockSize);
}

TEST_CASE("in another boot only flushed blocks are believed") {
  const Maps maps;
  {
    const auto map = BlockMap::create(maps.target());
    map->set_written({kBlockSize, 3 * kBlockSize});
    map->checkpoint(maps.data);
    map->set_written({5 * kBlockSize, kSize});
  }
  CHECK(BlockMap::peek(maps.target("boot-2"))->believed_bytes == 2 * kBlockSize);
  CHECK(BlockMap::peek(maps.target("boot-1"))->believed_bytes == 7 * kBlockSize + 100);
  {
    const auto map = BlockMap::load(maps.target("boot-2"));
    CHECK(map->written_bytes() == 2 * kBlockSize);
    map->set_written({0, kBlockSize});
  }
  // What the first boot wrote and did not flush stays gone, whoever asks.
  CHECK(BlockMap::peek(maps.target("boot-1"))->believed_bytes == 2 * kBlockSize);
  CHECK(BlockMap::peek(maps.target("boot-2"))->believed_bytes == 3 * kBlockSize);
}

TEST_CASE("a kill while the boots change over leaves nothing that was not flushed") {
  const Maps maps;
  {
    const auto map = BlockMap::create(maps.target());
    map->set_written({0, kBlockSize});
    map->checkpoint(maps.data);
    map->set_written({0, kSize});
  }
  // load() stores the bits first: this is the file between its two writes.
  std::string bytes = read_text(maps.target().path);
  bytes.replace(128, 2, bytes.substr(130, 2));
  write_text(maps.target().path, bytes);
  CHECK(BlockMap::peek(maps.target("boot-2"))->believed_bytes == kBlockSize);
  CHECK(BlockMap::peek(maps.target("boot-1"))->believed_bytes == kBlockSize);
}

TEST_CASE("an unknown boot equals none, not even another unknown one") {
  const Maps maps;
  BlockMap::create(maps.target(""))->set_written({0, kSize});
  CHECK(BlockMap::load(maps.target(""))->written_bytes() == 0);
}

TEST_CASE("after a flush has failed the written blocks are the flushed ones") {
  const Maps maps;
  const auto map = BlockMap::create(maps.target());
  map->set_written({0, kBlockSize});
  map->checkpoint(maps.data);
  map->set_written({0, kSize});
  CHECK_THROWS_AS(map->checkpoint(Fd()), Error);
  CHECK(map->written_bytes() == kBlockSize);
  CHECK(BlockMap::peek(maps.target())->believed_bytes == kBlockSize);
  map->set_written({kBlockSize, 2 * kBlockSize});
  map->checkpoint(maps.data);
  CHECK(BlockMap::peek(maps.target("boot-2"))->believed_bytes == 2 * kBlockSize);
}

TEST_CASE("a map that is missing, damaged or of another blob is none") {
  const Maps maps;
  CHECK(BlockMap::load(maps.target()) == nullptr);
  CHECK_FALSE(BlockMap::peek(maps.target()));
  BlockMap::create(maps.target())->set_written({0, kSize});
  const std::string good = read_text(maps.target().path);

  for (std::size_t length = 0; length < good.size(); ++length) {
    write_text(maps.target().path, good.substr(0, length));
    CAPTURE(length);
    CHECK(BlockMap::load(maps.target()) == nullptr);
  }
  for (std::size_t at = 0; at < 128; ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    write_text(maps.target().path, bad);
    CAPTURE(at);
    CHECK(BlockMap::load(maps.target()) == nullptr);
  }
  write_text(maps.target().path, good);
  BlockMap::Target other = maps.target();
  other.key = Digest::of("other");
  CHECK(BlockMap::load(other) == nullptr);
}

TEST_CASE("bits past the last block do not count") {
  const Maps maps;
  (void)BlockMap::create(maps.target());
  std::string bytes = read_text(maps.target().path);
  bytes.replace(128, 2, "\xFF\xFF");
  write_text(maps.target().path, bytes);
  CHECK(BlockMap::load(maps.target())->written_bytes() == kSize);
}

TEST_CASE("neighbours that are marked at the same time are all there, in memory and on disk") {
  const Maps maps;
  BlockMap::Target target = maps.target();
  constexpr std::uint64_t kBlocks = 4096;
  target.size = kBlocks * kBlockSize;
  const auto map = BlockMap::create(target);
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t first = 0; first < 4; ++first) {
      threads.emplace_back([&, first] {
        for (std::uint64_t block = first; block < kBlocks; block += 4) {
          map->set_written({block * kBlockSize, (block + 1) * kBlockSize});
        }
      });
    }
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) map->checkpoint(maps.data);
    });
  }
  CHECK(map->written_bytes() == target.size);
  map->checkpoint(maps.data);
  CHECK(BlockMap::peek(target)->believed_bytes == target.size);
  target.boot_id = "boot-2";
  CHECK(BlockMap::peek(target)->believed_bytes == target.size);
}
