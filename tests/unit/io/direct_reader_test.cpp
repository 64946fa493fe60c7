// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "io/direct_reader.hpp"

#include "base/error.hpp"
#include "io/reader_pool.hpp"
#include "io/scratch_file.hpp"

#include <sys/mman.h>
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <stdexcept>
#include <string>
#include <vector>

using weightfs::ByteRange;
using weightfs::Errc;
using weightfs::Error;
using namespace weightfs::io;
using weightfs::test::pattern;
using weightfs::test::ScratchFile;
using Engine = DirectReaderOptions::Engine;

namespace {

constexpr std::size_t kChunk = 64 << 10;

/// Appends; checks that chunks come without a gap.
struct Collected {
  std::uint64_t next;
  std::string bytes;

  OnChunk sink() {
    return [this](std::uint64_t offset, std::span<const std::byte> data) {
      REQUIRE(offset == next);
      next += data.size();
      bytes.append(reinterpret_cast<const char*>(data.data()), data.size());
    };
  }
};

/// Of the first `size` bytes.
std::size_t resident_pages(const weightfs::Fd& fd, std::size_t size) {
  void* mapping = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.value(), 0);
  REQUIRE(mapping != MAP_FAILED);
  std::vector<unsigned char> pages((size + 4095) / 4096);
  const int result = ::mincore(mapping, size, pages.data());
  ::munmap(mapping, size);
  REQUIRE(result == 0);
  return static_cast<std::size_t>(
      std::ranges::count_if(pages, [](unsigned char page) { return (page & 1) != 0; }));
}

std::vector<std::filesystem::path> directories() {
  // The build tree is on a disk; /dev/shm is tmpfs everywhere.
  return {std::filesystem::current_path(), "/dev/shm"};
}

}  // namespace

TEST_CASE("any range of a file arrives whole and in order") {
  const auto directory = GENERATE(from_range(directories()));
  const Engine engine = GENERATE(Engine::kRingOrPread, Engine::kPread);
  const std::size_t size = 10 * kChunk + 777;
  const std::string content = pattern(size);
  const ScratchFile scratch(directory, content);
  DirectReader reader({.queue_depth = 4, .chunk = kChunk, .engine = engine});
  INFO(directory << (reader.uses_ring() ? " with io_uring" : " with pread"));

  const std::vector<ByteRange> ranges = {
      {0, size},
      {0, 1},
      {size - 1, size},
      {size - 777, size},
      {1, size},
      {4095, 4097},
      {kChunk, 2 * kChunk},
      {kChunk - 1, kChunk + 1},
      {5, 5 * kChunk + 5},
      {10 * kChunk, size},
      {3 * kChunk + 511, 9 * kChunk + 513},
  };
  DirectFile file(scratch.open());
  for (const ByteRange range : ranges) {
    INFO(range.begin << " to " << range.end);
    Collected collected{range.begin, {}};
    reader.read(file, range, collected.sink(), {});
    // Not CHECK on the strings: a failure would print them.
    CHECK(collected.bytes.size() == range.size());
    CHECK((collected.bytes == content.substr(range.begin, range.size())));
  }
}

TEST_CASE("what is read once leaves nothing in the page cache") {
  const std::size_t size = 64 * kChunk;
  const ScratchFile scratch(std::filesystem::current_path(), pattern(size));
  DirectFile file(scratch.open());
  if (!file.direct()) SKIP("the filesystem of the build tree takes no O_DIRECT");
  CHECK(file.alignment() >= 512);
  DirectReader reader({.queue_depth = 4, .chunk = kChunk});
  for (int i = 0; i < 2; ++i) {
    INFO((file.direct() ? "direct" : "buffered"));
    CHECK(((::fcntl(file.fd().value(), F_GETFL) & O_DIRECT) != 0) == file.direct());
    ::posix_fadvise(file.fd().value(), 0, 0, POSIX_FADV_DONTNEED);
    Collected collected{0, {}};
    reader.read(file, {0, size}, collected.sink(), {});
    CHECK(resident_pages(file.fd(), size) <= (file.direct() ? 0 : size / 4096 / 16));
    file.fall_back_to_buffered();
  }
  CHECK(file.alignment() == 1);
}

TEST_CASE("a file that shrinks under the read is an error, after the bytes that were there") {
  const Engine engine = GENERATE(Engine::kRingOrPread, Engine::kPread);
  const auto directory = GENERATE(from_range(directories()));
  const std::uint64_t cut = GENERATE(2 * kChunk, 2 * kChunk + 100, 5 * kChunk);
  const std::string content = pattern(8 * kChunk);
  const ScratchFile scratch(directory, content);
  DirectFile file(scratch.open());
  DirectReader reader({.queue_depth = 1, .chunk = kChunk, .engine = engine});
  Collected collected{0, {}};
  const OnChunk sink = collected.sink();
  bool truncated = false;
  try {
    reader.read(file, {0, content.size()},
                [&](std::uint64_t offset, std::span<const std::byte> data) {
                  sink(offset, data);
                  if (!truncated) truncated = ::truncate(scratch.path().c_str(), off_t(cut)) == 0;
                },
                {});
    FAIL("the read ended well");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kChanged);
  }
  CHECK(collected.bytes.size() == cut);
  CHECK((collected.bytes == content.substr(0, cut)));
}

TEST_CASE("a range behind the end of the file is an error") {
  const ScratchFile scratch("/dev/shm", "0123456789");
  DirectFile file(scratch.open());
  DirectReader reader({.queue_depth = 2, .chunk = kChunk});
  Collected collected{8, {}};
  CHECK_THROWS_AS(reader.read(file, {8, 20}, collected.sink(), {}), Error);
  CHECK(collected.bytes == "89");
  collected = {100, {}};
  CHECK_THROWS_AS(reader.read(file, {100, 200}, collected.sink(), {}), Error);
  CHECK(collected.bytes.empty());
}

TEST_CASE("what the sink throws comes out, and the reader works on") {
  const Engine engine = GENERATE(Engine::kRingOrPread, Engine::kPread);
  const std::string content = pattern(20 * kChunk);
  const ScratchFile scratch(std::filesystem::current_path(), content);
  DirectFile file(scratch.open());
  DirectReader reader({.queue_depth = 8, .chunk = kChunk, .engine = engine});
  for (int i = 0; i < 20; ++i) {
    CHECK_THROWS_AS(reader.read(file, {0, content.size()},
                                [](auto, auto) { throw std::out_of_range("mine"); }, {}),
                    std::out_of_range);
    Collected collected{1, {}};
    reader.read(file, {1, content.size()}, collected.sink(), {});
    CHECK((collected.bytes == content.substr(1)));
  }
}

TEST_CASE("a stop ends the read, and the reader works on") {
  const Engine engine = GENERATE(Engine::kRingOrPread, Engine::kPread);
  const std::string content = pattern(20 * kChunk);
  const ScratchFile scratch("/dev/shm", content);
  DirectFile file(scratch.open());
  DirectReader reader({.queue_depth = 4, .chunk = kChunk, .engine = engine});
  std::stop_source stop;
  int chunks = 0;
  try {
    reader.read(
        file, {0, content.size()},
        [&](auto, auto) {
          ++chunks;
          stop.request_stop();
        },
        stop.get_token());
    FAIL("the read ended well");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kCancelled);
  }
  CHECK(chunks <= 4);
  Collected collected{0, {}};
  reader.read(file, {0, content.size()}, collected.sink(), {});
  CHECK((collected.bytes == content));
}

TEST_CASE("a pool keeps no more readers than are in use, and one afterwards") {
  ReaderPool pool({.queue_depth = 1, .chunk = kChunk});
  CHECK(pool.idle() == 0);
  {
    const auto first = pool.take();
    {
      const auto second = pool.take();
      {
        const auto third = pool.take();
        const auto fourth = pool.take();
        const auto fifth = pool.take();
      }
      CHECK(pool.idle() == 2);
    }
    CHECK(pool.idle() == 1);
    const auto again = pool.take();
    CHECK(pool.idle() == 0);
  }
  CHECK(pool.idle() == 1);
}
