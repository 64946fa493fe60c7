// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/read_pattern.hpp"

#include "fetch/fetcher_options.hpp"

#include <catch2/catch_test_macros.hpp>

namespace weightfs::fetch {
namespace {

constexpr std::uint64_t kKiB = 1 << 10;
constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kGiB = 1 << 30;

snapshot::File file(const std::string& path, std::uint64_t size) {
  snapshot::File made;
  made.path = path;
  made.size = size;
  return made;
}

ReadPattern pattern(const std::string& path, std::uint64_t size) {
  const FetcherOptions defaults;
  return {file(path, size),
          {.file_ahead_after = defaults.file_ahead_after,
           .snapshot_ahead_after = defaults.snapshot_ahead_after}};
}

void read_all(ReadPattern& pattern, ByteRange range, std::uint64_t step) {
  for (std::uint64_t at = range.begin; at < range.end; at += step) {
    pattern.on_read({at, std::min(range.end, at + step)});
  }
}

TEST_CASE("reading a header, however often and through whatever read-ahead, wants nothing more") {
  ReadPattern shard = pattern("model-00001-of-00004.safetensors", 5 * kGiB);
  SECTION("a few KiB by read") {
    read_all(shard, {0, 100 * kKiB}, 4 * kKiB);
  }
  SECTION("one page fault is 4 MiB of READs") {
    read_all(shard, {0, 4 * kMiB}, kMiB);
  }
  SECTION("a header that reaches into the next window is 8 MiB") {
    read_all(shard, {0, 8 * kMiB}, kMiB);
  }
  SECTION("a hundred indexers") {
    for (int i = 0; i < 100; ++i) read_all(shard, {0, 8 * kMiB}, kMiB);
  }
  CHECK_FALSE(shard.wants_file());
  CHECK_FALSE(shard.is_loader());
}

TEST_CASE("a reader that goes on wants the file, then the snapshot") {
  ReadPattern shard = pattern("model.safetensors", 5 * kGiB);
  read_all(shard, {0, 12 * kMiB}, 128 * kKiB);
  CHECK(shard.wants_file());
  CHECK_FALSE(shard.is_loader());
  read_all(shard, {12 * kMiB, 64 * kMiB}, 128 * kKiB);
  CHECK(shard.is_loader());
}

TEST_CASE("a loader that reads in another order is a loader") {
  ReadPattern shard = pattern("model.safetensors", 5 * kGiB);
  for (std::uint64_t i = 0; i < 16; ++i) {
    const std::uint64_t at = (i * 7 % 16) * 300 * kMiB;
    read_all(shard, {at, at + 4 * kMiB}, kMiB);
  }
  CHECK(shard.is_loader());
}

TEST_CASE("a quarter of a small model is enough") {
  ReadPattern model = pattern("model.onnx", 90 * kMiB);
  read_all(model, {0, 20 * kMiB}, kMiB);
  CHECK_FALSE(model.is_loader());
  read_all(model, {20 * kMiB, 23 * kMiB}, kMiB);
  CHECK(model.is_loader());
}

TEST_CASE("a large file that holds no weights is read ahead, alone") {
  ReadPattern data = pattern("tokenizer.json", 40 * kMiB);
  read_all(data, {0, 40 * kMiB}, kMiB);
  CHECK(data.wants_file());
  CHECK_FALSE(data.is_loader());
}

TEST_CASE("weights are known by their names, else by their size") {
  CHECK(holds_weights(file("a/b/model.safetensors", 10)));
  CHECK(holds_weights(file("MODEL.GGUF", 10)));
  CHECK(holds_weights(file("consolidated.00.pth", 10)));
  CHECK(holds_weights(file("weights-part", 64 * kMiB)));
  CHECK_FALSE(holds_weights(file("config.json", 1000)));
  CHECK_FALSE(holds_weights(file("bin", 1000)));
}

TEST_CASE("a sequential reader's next bytes are known, a random reader's are not") {
  ReadPattern shard = pattern("model.safetensors", kGiB);
  read_all(shard, {0, 10 * kMiB}, kMiB);
  CHECK(shard.next_bytes(4 * kMiB).empty());
  read_all(shard, {10 * kMiB, 14 * kMiB}, kMiB);
  CHECK(shard.next_bytes(4 * kMiB) == ByteRange{14 * kMiB, 18 * kMiB});
  shard.on_read({500 * kMiB, 501 * kMiB});
  CHECK(shard.next_bytes(4 * kMiB).empty());
  // The first reader goes on where it was, out of order as the kernel sends it.
  shard.on_read({15 * kMiB, 16 * kMiB});
  shard.on_read({14 * kMiB, 15 * kMiB});
  CHECK(shard.next_bytes(4 * kMiB) == ByteRange{16 * kMiB, 20 * kMiB});
}

TEST_CASE("the next bytes end with the file") {
  ReadPattern shard = pattern("model.safetensors", 15 * kMiB);
  read_all(shard, {0, 14 * kMiB}, kMiB);
  CHECK(shard.next_bytes(4 * kMiB) == ByteRange{14 * kMiB, 15 * kMiB});
}

TEST_CASE("new readers begin anew") {
  ReadPattern shard = pattern("model.safetensors", kGiB);
  read_all(shard, {0, 64 * kMiB}, kMiB);
  shard.forget();
  CHECK_FALSE(shard.wants_file());
  shard.on_read({0, kMiB});
  CHECK_FALSE(shard.wants_file());
}

}  // namespace
}  // namespace weightfs::fetch
