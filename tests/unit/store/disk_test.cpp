// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
// Disks that are full, read-only, failing, or lose their power. Needs root; skipped without.
#include "base/error.hpp"
#include "base/file.hpp"
#include "loop_filesystem.hpp"
#include "store_fixture.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <fcntl.h>
#include <unistd.h>
#include <functional>

using namespace weightfs;
using namespace weightfs::store;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

/// Skips the test where no disk is to be had.
void require_disks() {
  static const std::string reason = LoopFilesystem::unavailable();
  if (!reason.empty()) SKIP("no loop-mounted filesystem: " << reason);
}

Errc error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code();
  }
  return Errc::kInternal;
}

}  // namespace

TEST_CASE("the root of a filesystem may hold lost+found, and nothing else that is not ours") {
  require_disks();
  const LoopFilesystem disk(16 << 20);
  const ManualClock clock;
  REQUIRE(fs::exists(disk.path() / "lost+found"));
  {
    CHECK_NOTHROW(open_volume(disk.path(), clock));
  }
  CHECK_NOTHROW(open_volume(disk.path(), clock));
  write_text(disk.path() / "more", "");
  CHECK(error_of([&] { (void)open_volume(disk.path(), clock); }) == Errc::kInvalid);
}

TEST_CASE("a fill that cannot fit is refused at its start, and leaves nothing") {
  require_disks();
  const LoopFilesystem disk(16 << 20);
  const ManualClock clock;
  const auto store = open_volume(disk.path() / "store", clock);
  CHECK(error_of([&] { (void)store->partial(Digest::of("key"), 64 << 20); }) == Errc::kNoSpace);
  CHECK(fs::is_empty(disk.path() / "store" / "partial"));
  CHECK(store->usage().partial_bytes == 0);
  put(*store, "small");
  CHECK(store->find(Digest::of("small")));
}

TEST_CASE("a preallocated fill ends on a disk that others have filled meanwhile") {
  require_disks();
  const LoopFilesystem disk(24 << 20);
  const ManualClock clock;
  const auto store = open_volume(disk.path() / "store", clock);
  put(*store, "makes the folders");
  const std::string content = random_bytes(4 << 20, 1);
  const auto partial = store->partial(Digest::of(content), content.size());
  disk.fill_up();
  CHECK_NOTHROW(fill(*partial, content));
  CHECK_NOTHROW(partial->checkpoint());
  // The index may have no room left for the row; then nothing is published and all can be repeated.
  try {
    (void)partial->commit(Digest::of(content), {});
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kNoSpace);
    CHECK_FALSE(store->contains(Digest::of(content)));
    disk.free_up();
    (void)partial->commit(Digest::of(content), {});
  }
  CHECK(content_of(*store->find(Digest::of(content))) == content);
}

TEST_CASE("a full disk is no reason to refuse a store, to miss, or to keep what must go") {
  require_disks();
  const LoopFilesystem disk(24 << 20);
  const ManualClock clock;
  const std::string content = random_bytes(2 << 20, 2);
  {
    put(*open_volume(disk.path() / "store", clock), content);
  }
  disk.fill_up();
  {
    const auto store = open_volume(disk.path() / "store", clock);
    CHECK(store->usage().free == 0);
    const auto blob = store->find(Digest::of(content));
    REQUIRE(blob);
    CHECK(content_of(*blob) == content);
    store->touch(blob->digest);
    store->mark_verified(blob->digest);
    CHECK(store->verify(blob->digest, nullptr) == VerifyOutcome::kIntact);
    CHECK(error_of([&] { (void)store->partial(Digest::of("key"), 1 << 20); }) == Errc::kNoSpace);
    CHECK(fs::is_empty(disk.path() / "store" / "partial"));
    CHECK(store->remove(blob->digest) == content.size());
    CHECK_FALSE(store->find(Digest::of(content)));
    CHECK(store->usage().evicted_open_bytes == content.size());
  }
  const auto store = open_volume(disk.path() / "store", clock);
  CHECK(content_of(put(*store, "fits now")) == "fits now");
}

TEST_CASE("a read-only disk is refused in its own words") {
  require_disks();
  LoopFilesystem disk(16 << 20);
  const ManualClock clock;
  {
    put(*open_volume(disk.path() / "store", clock), "content");
  }
  disk.remount_read_only();
  try {
    (void)open_volume(disk.path() / "store", clock);
    FAIL("opened");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kIo);
    CHECK_THAT(error.what(), ContainsSubstring("Read-only file system"));
  }
  CHECK(error_of([&] { (void)open_volume(disk.path() / "new", clock); }) == Errc::kIo);
}

TEST_CASE("a disk that fails under a store is a miss or an error, and the next one starts afresh") {
  require_disks();
  LoopFilesystem disk(64 << 20);
  const ManualClock clock;
  const Digest digest = Digest::of("content");
  {
    const auto store = open_volume(disk.path() / "store", clock);
    put(*store, "content");
    const auto partial = store->partial(Digest::of("key"), 4 * kBlockSize);
    partial->set_written({0, 2 * kBlockSize});
    partial->checkpoint();
    partial->set_written({0, 4 * kBlockSize});
    disk.fail();
    CHECK_FALSE(store->contains(digest));
    CHECK_FALSE(store->find(digest));
    CHECK_FALSE(store->verified_this_boot(digest));
    CHECK_NOTHROW(store->touch(digest));
    CHECK_NOTHROW(store->mark_verified(digest));
    CHECK(error_of([&] { (void)store->partial(Digest::of("another"), 10); }) == Errc::kIo);
    CHECK(error_of([&] { partial->write(0, std::as_bytes(std::span("x"))); }) == Errc::kIo);
    CHECK(error_of([&] { partial->checkpoint(); }) == Errc::kIo);
    CHECK(partial->written_bytes() == 2 * kBlockSize);
    CHECK(error_of([&] { partial->checkpoint(); }) == Errc::kIo);  // not with less than was there
    CHECK(error_of([&] { (void)store->remove(digest); }) == Errc::kIo);
  }
  const auto repaired = disk.after_power_cut();
  const auto store = open_volume(repaired->path() / "store", clock, "boot-2");
  CHECK(content_of(*store->find(digest)) == "content");
  CHECK(store->partial_bytes(Digest::of("key")) == 2 * kBlockSize);
}

TEST_CASE("a sector that cannot be read makes the blob corrupt, and it leaves the store") {
  require_disks();
  LoopFilesystem disk(64 << 20);
  const ManualClock clock;
  const auto store = open_volume(disk.path() / "store", clock);
  const Digest digest = put(*store, random_bytes(20 << 20, 3)).digest;
  ::sync();
  LoopFilesystem::forget_pages(blob_path(disk.path() / "store", digest));
  // The loop device answers EIO for what its file does not have.
  const std::uint64_t whole = fs::file_size(disk.image());
  fs::resize_file(disk.image(), 12 << 20);
  const VerifyOutcome outcome = store->verify(digest, nullptr);
  fs::resize_file(disk.image(), whole);
  CHECK(outcome == VerifyOutcome::kCorrupt);
  CHECK_FALSE(store->contains(digest));
  CHECK(store->usage().quarantined == 1);
}

TEST_CASE("after a power cut, what was committed and what was flushed is there, and nothing else") {
  require_disks();
  const LoopFilesystem disk(64 << 20);
  const ManualClock clock;
  const std::string first = random_bytes(kPartSize + 1000, 4);
  const std::string second = random_bytes(300'000, 5);
  const std::string partial_content = random_bytes(40 * kBlockSize, 6);
  const Digest key = Digest::of("key");
  const auto check = [&](std::size_t blobs, std::uint64_t partial_bytes) {
    const auto cut = disk.after_power_cut();
    const auto store = open_volume(cut->path() / "store", clock, "boot-2");
    CHECK(store->usage().blobs == blobs);
    CHECK(store->usage().quarantined == 0);
    for (const Digest& digest : store->list()) {
      const auto blob = store->find(digest);
      REQUIRE(blob);
      CHECK(Digest::of(content_of(*blob)) == digest);
      CHECK(store->verify(digest, nullptr) == VerifyOutcome::kIntact);
    }
    CHECK(store->partial_bytes(key) == partial_bytes);
    const auto partial = store->partial(key, partial_content.size());
    const std::vector<bool> blocks = partial->written_blocks();
    for (std::size_t block = 0; block < blocks.size(); ++block) {
      if (!blocks[block]) continue;
      std::string got(kBlockSize, '\0');
      read_at(partial->fd(), block * kBlockSize, std::as_writable_bytes(std::span(got)));
      CHECK(got == partial_content.substr(block * kBlockSize, kBlockSize));
    }
  };
  const auto write_blocks = [&](PartialBlob& partial, std::uint64_t begin, std::uint64_t end) {
    partial.write(begin * kBlockSize, std::as_bytes(std::span(partial_content))
                                          .subspan(begin * kBlockSize, (end - begin) * kBlockSize));
    partial.set_written({begin * kBlockSize, end * kBlockSize});
  };

  const auto store = open_volume(disk.path() / "store", clock, "boot-1");
  check(0, 0);
  put(*store, first);
  check(1, 0);
  const auto partial = store->partial(key, partial_content.size());
  write_blocks(*partial, 0, 10);
  check(1, 0);
  partial->checkpoint();
  check(1, 10 * kBlockSize);
  write_blocks(*partial, 20, 30);
  check(1, 10 * kBlockSize);
  put(*store, second);
  check(2, 10 * kBlockSize);
  write_blocks(*partial, 10, 12);
  partial->checkpoint();
  check(2, 22 * kBlockSize);
  store->remove(Digest::of(second));
  // The row's end need not be on disk yet; the file's is, and find() drops such a row.
  const auto cut = disk.after_power_cut();
  const auto later = open_volume(cut->path() / "store", clock, "boot-2");
  CHECK_FALSE(later->find(Digest::of(second)));
  CHECK(later->find(Digest::of(first)));
  CHECK(later->usage().blobs == 1);
  CHECK(later->usage().quarantined == 0);
}
