// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/verification.hpp"

#include "base/error.hpp"
#include "store_fixture.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <fmt/format.h>

using namespace weightfs;
using namespace weightfs::store;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

struct Shelf {
  TemporaryDirectory directory;
  ManualClock clock;
  fs::path root = directory.path() / "store";
  std::unique_ptr<Volume> store = open_volume(root, clock);

  /// The note of the only file in quarantine.
  [[nodiscard]] std::string note() const {
    for (const auto& entry : fs::directory_iterator(root / "quarantine")) {
      if (entry.path().extension() == ".txt") return read_text(entry.path());
    }
    return "";
  }
};

}  // namespace

TEST_CASE("every part of an intact blob passes, alone") {
  const Shelf shelf;
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{1}, kPartSize - 1, kPartSize,
                                   kPartSize + 1, 2 * kPartSize}) {
    CAPTURE(size);
    const Blob blob = put(*shelf.store, random_bytes(size, size));
    const auto midstates = shelf.store->midstates(blob.digest);
    REQUIRE(midstates);
    const std::size_t parts = part_count(size);
    CHECK(parts == std::max<std::uint64_t>(1, (size + kPartSize - 1) / kPartSize));
    for (std::size_t part = 0; part < parts; ++part) CHECK(check_part(blob, part, *midstates));
    CHECK_THROWS_AS(check_part(blob, parts, *midstates), Error);
    CHECK_THROWS_AS(check_part(blob, 0, std::vector<Midstate>(9)), Error);
  }
}

TEST_CASE("a flipped byte fails its own part and no other") {
  const Shelf shelf;
  const Blob blob = put(*shelf.store, random_bytes(2 * kPartSize + 1000, 1));
  const auto midstates = shelf.store->midstates(blob.digest);
  for (std::size_t bad = 0; bad < 3; ++bad) {
    const std::uint64_t offset = bad * kPartSize + 500;
    flip_byte(blob_path(shelf.root, blob.digest), offset);
    for (std::size_t part = 0; part < 3; ++part) {
      CHECK(check_part(blob, part, *midstates) == (part != bad));
    }
    flip_byte(blob_path(shelf.root, blob.digest), offset);
  }
}

TEST_CASE("a part that is cut short fails") {
  const Shelf shelf;
  const Blob blob = put(*shelf.store, random_bytes(1000, 1));
  fs::permissions(blob_path(shelf.root, blob.digest), fs::perms::owner_all);
  fs::resize_file(blob_path(shelf.root, blob.digest), 999);
  CHECK_FALSE(check_part(blob, 0, {}));
  const Rehash found = rehash(blob, {}, nullptr);
  CHECK_FALSE(found.intact);
}

TEST_CASE("verify hashes every byte once and says so as it goes") {
  const Shelf shelf;
  const Blob blob = put(*shelf.store, random_bytes(kPartSize + 12345, 2));
  std::uint64_t seen = 0;
  CHECK(shelf.store->verify(blob.digest, [&](std::uint64_t bytes) { seen += bytes; }) ==
        VerifyOutcome::kIntact);
  CHECK(seen == kPartSize + 12345);
  CHECK(shelf.store->verify(Digest::of("nobody"), nullptr) == VerifyOutcome::kMissing);
}

TEST_CASE("a progress that throws stops the verification and changes nothing") {
  const Shelf shelf;
  const Blob blob = put(*shelf.store, random_bytes(3 << 20, 2));
  int calls = 0;
  CHECK_THROWS_AS(shelf.store->verify(blob.digest,
                                      [&](std::uint64_t) {
                                        if (++calls == 2) throw Error(Errc::kCancelled, "enough");
                                      }),
                  Error);
  CHECK(calls == 2);
  CHECK(shelf.store->contains(blob.digest));
}

TEST_CASE("a blob that rotted in place is found by verify alone, quarantined, and named by part") {
  const Shelf shelf;
  const Digest digest = put(*shelf.store, random_bytes(2 * kPartSize + 1000, 3)).digest;
  flip_byte(blob_path(shelf.root, digest), kPartSize + 7);
  CHECK(shelf.store->find(digest));
  CHECK(shelf.store->verify(digest, nullptr) == VerifyOutcome::kCorrupt);
  CHECK_FALSE(shelf.store->contains(digest));
  CHECK_FALSE(shelf.store->find(digest));
  CHECK(shelf.store->usage().quarantined == 1);
  CHECK_THAT(shelf.note(), ContainsSubstring(fmt::format("bytes {}-{}", kPartSize, 2 * kPartSize)));
  CHECK(shelf.store->verify(digest, nullptr) == VerifyOutcome::kMissing);
}

TEST_CASE("the last part and a blob of one part are named, too") {
  const Shelf shelf;
  const Digest large = put(*shelf.store, random_bytes(kPartSize + 1000, 4)).digest;
  flip_byte(blob_path(shelf.root, large), kPartSize + 7);
  CHECK(shelf.store->verify(large, nullptr) == VerifyOutcome::kCorrupt);
  CHECK_THAT(shelf.note(),
             ContainsSubstring(fmt::format("bytes {}-{}", kPartSize, kPartSize + 1000)));
  const Digest small = put(*shelf.store, "content").digest;
  flip_byte(blob_path(shelf.root, small), 0);
  CHECK(shelf.store->verify(small, nullptr) == VerifyOutcome::kCorrupt);
}

TEST_CASE("a blob that was touched is corrupt, one whose file is gone is missing") {
  const Shelf shelf;
  const Digest touched = put(*shelf.store, "touched").digest;
  const fs::path path = blob_path(shelf.root, touched);
  fs::last_write_time(path, fs::last_write_time(path) + std::chrono::seconds(1));
  CHECK(shelf.store->verify(touched, nullptr) == VerifyOutcome::kCorrupt);
  const Digest gone = put(*shelf.store, "gone").digest;
  fs::remove(blob_path(shelf.root, gone));
  CHECK(shelf.store->verify(gone, nullptr) == VerifyOutcome::kMissing);
}

TEST_CASE("damaged parts are no fault of the blob and are written anew") {
  const Shelf shelf;
  const std::string content = random_bytes(2 * kPartSize + 5, 5);
  const Hashed hashed = hash(content);
  put(*shelf.store, content);
  const fs::path parts = parts_path(shelf.root, hashed.digest);
  SECTION("garbage") {
    write_text(parts, "garbage");
  }
  SECTION("of another blob") {
    const std::string other = random_bytes(2 * kPartSize + 6, 6);
    put(*shelf.store, other);
    fs::copy_file(parts_path(shelf.root, hash(other).digest), parts,
                  fs::copy_options::overwrite_existing);
  }
  CHECK_FALSE(shelf.store->midstates(hashed.digest));
  CHECK(shelf.store->verify(hashed.digest, nullptr) == VerifyOutcome::kIntact);
  CHECK(shelf.store->midstates(hashed.digest) == hashed.midstates);
}
