// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/parts_file.hpp"

#include "store/partial_blob.hpp"
#include "store_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace weightfs;
using namespace weightfs::store;

namespace {

std::string bytes_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.bytes().data()), Digest::kSize};
}

}  // namespace

TEST_CASE("there is one midstate per part boundary before the end") {
  CHECK(midstate_count(0) == 0);
  CHECK(midstate_count(1) == 0);
  CHECK(midstate_count(kPartSize) == 0);
  CHECK(midstate_count(kPartSize + 1) == 1);
  CHECK(midstate_count(2 * kPartSize) == 1);
  CHECK(midstate_count(2 * kPartSize + 1) == 2);
}

TEST_CASE("the parts file has the bytes that FORMAT.md shows, and reads back") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "x.parts";
  const std::vector<Midstate> midstates{Digest::of("1").bytes(), Digest::of("2").bytes()};
  const std::uint64_t size = 2 * kPartSize + 5;
  write_parts(path, Digest::of("blob"), size, midstates);

  std::string expected = "wfsparts";
  expected += std::string("\x01\0\0\0", 4);
  expected += std::string("\0\0\x80\0", 4);
  expected += std::string("\x05\0\0\x01\0\0\0\0", 8);
  expected += bytes_of(Digest::of("blob")) + bytes_of(Digest::of("1")) + bytes_of(Digest::of("2"));
  expected += bytes_of(Digest::of(expected));
  CHECK(read_text(path) == expected);

  const auto parts = read_parts(path);
  REQUIRE(parts);
  CHECK(parts->digest == Digest::of("blob"));
  CHECK(parts->size == size);
  CHECK(parts->midstates == midstates);

  write_parts(path, Digest::of("again"), 3, {});
  CHECK(read_parts(path)->digest == Digest::of("again"));
}

TEST_CASE("a parts file that is missing, cut or changed is none") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "x.parts";
  CHECK_FALSE(read_parts(path));
  write_parts(path, Digest::of("blob"), kPartSize + 1, std::vector<Midstate>(1));
  const std::string good = read_text(path);
  std::filesystem::remove(path);
  for (std::size_t at = 0; at < good.size(); ++at) {
    CAPTURE(at);
    write_text(path, good.substr(0, at));
    CHECK_FALSE(read_parts(path));
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x40);
    write_text(path, bad);
    CHECK_FALSE(read_parts(path));
  }
  write_text(path, good + "x");
  CHECK_FALSE(read_parts(path));
  write_text(path, good);
  CHECK(read_parts(path));
}

TEST_CASE("a parts file that cannot be read is none") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "x.parts";
  make_unreadable(path);
  CHECK_FALSE(read_parts(path));
}
