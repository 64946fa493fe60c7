// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
// What a store finds after it was killed, copied, or had its index taken away.
#include "base/error.hpp"
#include "base/file.hpp"
#include "store/blob_files.hpp"
#include "store/index.hpp"
#include "store/layout.hpp"
#include "store/parts_file.hpp"
#include "store_fixture.hpp"

#include <fmt/format.h>
#include <catch2/catch_test_macros.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <random>
#include <thread>

using namespace weightfs;
using namespace weightfs::store;
namespace fs = std::filesystem;

namespace {

struct Shelf {
  TemporaryDirectory directory;
  ManualClock clock;
  fs::path root = directory.path() / "store";

  [[nodiscard]] std::unique_ptr<Volume> open(const std::string& boot_id = "boot-1") const {
    return open_volume(root, clock, boot_id);
  }
  void remove_index() const {
    for (const char* name : {"index.db", "index.db-wal", "index.db-shm"}) fs::remove(root / name);
  }
};

/// Which digests have a file under blobs/.
std::vector<Digest> standing(const fs::path& root) {
  std::vector<Digest> digests;
  for (const auto& entry : fs::recursive_directory_iterator(root / "blobs")) {
    const auto digest = Digest::parse(entry.path().filename().string());
    if (digest) digests.push_back(*digest);
  }
  std::sort(digests.begin(), digests.end());
  return digests;
}

/// Blob after blob, removals and an unfinished fill, until somebody ends it.
[[noreturn]] void work_until_killed(const fs::path& root, std::uint64_t seed) {
  const ManualClock clock;
  const auto store = open_volume(root, clock);
  const std::string partial_content = random_bytes(32 * kBlockSize, 99);
  const auto unfinished = store->partial(Digest::of("unfinished"), partial_content.size());
  std::mt19937_64 random(seed);
  for (std::uint64_t round = 0;; ++round) {
    const std::string content = random_bytes(1000 + random() % 200'000, seed * 1000 + round % 20);
    const Digest digest = Digest::of(content);
    if (random() % 4 == 0) store->remove(digest);
    if (!store->contains(digest)) put(*store, content);
    const std::uint64_t block = random() % 32 * kBlockSize;
    unfinished->write(block, std::as_bytes(std::span(partial_content)).subspan(block, kBlockSize));
    unfinished->set_written({block, block + kBlockSize});
    if (round % 10 == 9) unfinished->checkpoint();
  }
}

/// Rows and files in step, every byte right, no leftover.
void check_whole(Volume& store, const fs::path& root) {
  const std::vector<Digest> listed = store.list();
  CHECK(listed == standing(root));
  std::uint64_t bytes = 0;
  for (const Digest& digest : listed) {
    const auto blob = store.find(digest);
    REQUIRE(blob);
    CHECK(Digest::of(content_of(*blob)) == digest);
    bytes += blob->size;
  }
  CHECK(store.usage().blobs == listed.size());
  CHECK(store.usage().bytes == bytes);
  CHECK(store.usage().quarantined == 0);
}

void check_unfinished(Volume& store) {
  const std::string content = random_bytes(32 * kBlockSize, 99);
  const auto partial = store.partial(Digest::of("unfinished"), content.size());
  const std::vector<bool> blocks = partial->written_blocks();
  for (std::size_t block = 0; block < blocks.size(); ++block) {
    if (!blocks[block]) continue;
    std::string got(kBlockSize, '\0');
    read_at(partial->fd(), block * kBlockSize, std::as_writable_bytes(std::span(got)));
    CHECK(got == content.substr(block * kBlockSize, kBlockSize));
  }
}

}  // namespace

TEST_CASE("an index that is missing or damaged is rebuilt from the files, as unverified") {
  const Shelf shelf;
  const std::string large = random_bytes(kPartSize + 5, 1);
  {
    const auto store = shelf.open();
    put(*store, large);
    put(*store, "small");
    put(*store, "");
  }
  SECTION("missing") {
    shelf.remove_index();
  }
  SECTION("damaged") {
    shelf.remove_index();
    write_text(shelf.root / "index.db", std::string(10'000, 'x'));
  }
  SECTION("from a rebuild that did not end") {
    shelf.remove_index();
    (void)Index::create(shelf.root / "index.db", "whatever");
  }
  const auto store = shelf.open();
  CHECK(store->usage().blobs == 3);
  CHECK(store->usage().bytes == large.size() + 5);
  check_whole(*store, shelf.root);
  const Digest digest = Digest::of(large);
  CHECK_FALSE(store->verified_this_boot(digest));
  CHECK(store->midstates(digest) == hash(large).midstates);
  CHECK(store->verify(digest, nullptr) == VerifyOutcome::kIntact);
  CHECK(store->verified_this_boot(digest));
}

TEST_CASE("a rebuild takes blobs only, and tidies what belongs to none") {
  const Shelf shelf;
  const std::string cut = random_bytes(kPartSize + 5, 2);
  {
    const auto store = shelf.open();
    put(*store, "good");
    put(*store, cut);
  }
  const fs::path cut_path = blob_path(shelf.root, Digest::of(cut));
  fs::permissions(cut_path, fs::perms::owner_all);
  fs::resize_file(cut_path, kPartSize);
  const Digest orphan = Digest::of("no blob");
  fs::create_directories(parts_path(shelf.root, orphan).parent_path());
  write_parts(parts_path(shelf.root, orphan), orphan, 5, {});
  const fs::path folder = blob_path(shelf.root, Digest::of("good")).parent_path();
  write_text(folder / "README", "not ours");
  write_text(folder / std::string(64, '0'), "in the wrong folder");
  write_text(shelf.root / "blobs" / "sha256" / "notes", "not ours");
  fs::create_directories(blob_path(shelf.root, Digest::of("a directory")));
  shelf.remove_index();

  const auto store = shelf.open();
  CHECK(store->list() == std::vector<Digest>{Digest::of("good")});
  CHECK(store->usage().quarantined == 1);
  CHECK_FALSE(fs::exists(cut_path));
  CHECK_FALSE(fs::exists(parts_path(shelf.root, Digest::of(cut))));
  CHECK_FALSE(fs::exists(parts_path(shelf.root, orphan)));
  CHECK(read_text(folder / "README") == "not ours");
  CHECK(fs::exists(shelf.root / "blobs" / "sha256" / "notes"));
}

TEST_CASE("a store that was copied keeps its blobs, though every inode is another") {
  const Shelf shelf;
  {
    const auto store = shelf.open();
    put(*store, "one");
    put(*store, "two");
  }
  const fs::path copy = shelf.directory.path() / "copy";
  fs::copy(shelf.root, copy, fs::copy_options::recursive);
  const auto store = open_volume(copy, shelf.clock);
  CHECK(content_of(*store->find(Digest::of("one"))) == "one");
  CHECK(content_of(*store->find(Digest::of("two"))) == "two");
  CHECK(store->usage().quarantined == 0);
  CHECK_FALSE(store->verified_this_boot(Digest::of("one")));
}

TEST_CASE("opening with a whole index does not look at the blobs") {
  const Shelf shelf;
  {
    const auto store = shelf.open();
    put(*store, "one");
    put(*store, "two");
  }
  // Neither the file that is gone nor the one that came is noticed before somebody asks.
  fs::remove(blob_path(shelf.root, Digest::of("one")));
  fs::create_directories(blob_path(shelf.root, Digest::of("three")).parent_path());
  write_text(blob_path(shelf.root, Digest::of("three")), "three");
  const auto store = shelf.open();
  CHECK(store->usage().blobs == 2);
  CHECK_FALSE(store->find(Digest::of("three")));
  CHECK_FALSE(store->find(Digest::of("one")));
  CHECK(store->usage().blobs == 1);
  // A commit replaces what stands there without a row; remove() takes it away.
  CHECK(content_of(put(*store, "three")) == "three");
  CHECK(store->usage().blobs == 2);
  write_text(blob_path(shelf.root, Digest::of("one")), "one");
  CHECK(store->remove(Digest::of("one")) == 3);
}

TEST_CASE("a publication that a crash cut in two is settled at open") {
  const Shelf shelf;
  {
    put(*shelf.open(), "other");
  }
  const Layout layout(shelf.root);
  const Digest digest = Digest::of("content");
  const fs::path data = shelf.directory.path() / "data";
  write_text(data, "content");
  const IndexRow row{.digest = digest,
                     .identity = identity_of(open_file(data, O_RDONLY)),
                     .created = 1,
                     .last_used = 1,
                     .verified_boot = boot_number("boot-1")};
  const std::string root = [&] {
    struct statx status{};
    REQUIRE(::statx(AT_FDCWD, layout.blobs().c_str(), 0, STATX_INO | STATX_BTIME, &status) == 0);
    return fmt::format("{}:{}.{:09}", status.stx_ino, status.stx_btime.tv_sec,
                       status.stx_btime.tv_nsec);
  }();
  const auto begin = [&] {
    const auto index = Index::open(layout.index(), root);
    REQUIRE(index);
    index->begin_publish(row, Index::Durability::kFlushed);
  };
  SECTION("before the rename: there is no such blob") {
    begin();
    const auto store = shelf.open();
    CHECK_FALSE(store->contains(digest));
    CHECK(store->usage().blobs == 1);
    CHECK(put(*store, "content").size == 7);
  }
  SECTION("after the rename: it is there") {
    begin();
    BlobFiles(layout).publish(digest, data, {});
    const auto store = shelf.open();
    CHECK(store->usage().blobs == 2);
    CHECK(store->usage().bytes == 12);
    CHECK(content_of(*store->find(digest)) == "content");
    CHECK(store->verified_this_boot(digest));
  }
  SECTION("after the rename of another file: that goes to quarantine") {
    begin();
    write_text(data, "CONTENT!");
    BlobFiles(layout).publish(digest, data, {});
    const auto store = shelf.open();
    CHECK_FALSE(store->contains(digest));
    CHECK(store->usage().blobs == 1);
    CHECK(store->usage().quarantined == 1);
  }
}

TEST_CASE("uses of blobs are written when there are many, when they are old, and at the end") {
  Shelf shelf;
  Digest digest;
  const auto last_used = [&] {
    // A second reader of the file, as after a crash: what is in memory only does not show.
    const fs::path copy = shelf.directory.path() / "copy.db";
    fs::copy_file(shelf.root / "index.db", copy, fs::copy_options::overwrite_existing);
    if (fs::exists(shelf.root / "index.db-wal")) {
      fs::copy_file(shelf.root / "index.db-wal", copy.string() + "-wal",
                    fs::copy_options::overwrite_existing);
    } else {
      fs::remove(copy.string() + "-wal");
    }
    struct statx status{};
    REQUIRE(::statx(AT_FDCWD, (shelf.root / "blobs" / "sha256").c_str(), 0, STATX_INO | STATX_BTIME,
                    &status) == 0);
    const auto index =
        Index::open(copy, fmt::format("{}:{}.{:09}", status.stx_ino, status.stx_btime.tv_sec,
                                      status.stx_btime.tv_nsec));
    REQUIRE(index);
    return index->find(digest)->last_used;
  };
  auto store = shelf.open();
  digest = put(*store, "content").digest;
  CHECK(last_used() == 1'700'000'000);
  shelf.clock.advance(std::chrono::seconds(10));
  store->touch(digest);
  store->touch(Digest::of("nobody"));
  CHECK(last_used() == 1'700'000'000);
  shelf.clock.advance(std::chrono::seconds(60));
  store->touch(digest);
  CHECK(last_used() == 1'700'000'070);
  shelf.clock.advance(std::chrono::seconds(5));
  store->touch(digest);
  for (int i = 0; i < 255; ++i) store->touch(Digest::of(std::to_string(i)));
  CHECK(last_used() == 1'700'000'075);
  shelf.clock.advance(std::chrono::seconds(5));
  store->touch(digest);
  store.reset();
  CHECK(last_used() == 1'700'000'080);
}

TEST_CASE("a store that is killed at any moment is whole when it is opened again") {
  const Shelf shelf;
  std::mt19937_64 random(11);
  for (std::uint64_t round = 0; round < 25; ++round) {
    CAPTURE(round);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      try {
        work_until_killed(shelf.root, round % 3);
      } catch (...) {
        ::_exit(1);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + random() % 100));
    REQUIRE(::kill(child, SIGKILL) == 0);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    const auto store = shelf.open();
    check_whole(*store, shelf.root);
    check_unfinished(*store);
  }
}

TEST_CASE("unreadable parts cost a verification, not the blob") {
  const Shelf shelf;
  const std::string content = random_bytes(kPartSize + 5, 1);
  const Digest digest = hash(content).digest;
  {
    put(*shelf.open(), content);
  }
  make_unreadable(parts_path(shelf.root, digest));
  SECTION("with the index") {
  }
  SECTION("when the index is rebuilt") {
    shelf.remove_index();
  }
  const auto store = shelf.open("boot-2");
  CHECK_FALSE(store->midstates(digest));
  CHECK(store->verify(digest, nullptr) == VerifyOutcome::kIntact);
  CHECK(store->midstates(digest) == hash(content).midstates);
}

TEST_CASE(
    "a partial blob whose map cannot be read is begun again and does not keep a store closed") {
  const Shelf shelf;
  const Digest key = Digest::of("key");
  const auto refill = [&](Volume& store) {
    const auto partial = store.partial(key, kBlockSize);
    CHECK(partial->written_bytes() == 0);
    fill(*partial, random_bytes(kBlockSize, 1));
  };
  {
    const auto store = shelf.open();
    refill(*store);
    make_unreadable(partial_path(shelf.root, key) / "map");
    CHECK(store->partial_bytes(key) == 0);
    refill(*store);
    make_unreadable(partial_path(shelf.root, key) / "map");
  }
  const auto store = shelf.open();
  CHECK_FALSE(fs::exists(partial_path(shelf.root, key)));
  refill(*store);
}

TEST_CASE("what stands in place of a blob and cannot be moved away is a miss") {
  const Shelf shelf;
  const auto store = shelf.open();
  const Digest digest = put(*store, "content").digest;
  fs::remove(blob_path(shelf.root, digest));
  fs::create_directory(blob_path(shelf.root, digest));
  fs::remove(shelf.root / "quarantine");
  CHECK_FALSE(store->find(digest));
  CHECK_FALSE(store->contains(digest));
}

TEST_CASE("a blob of an earlier boot is no match for the bytes that were just hashed") {
  const Shelf shelf;
  const std::string content = random_bytes(kPartSize + 5, 1);
  const Digest digest = put(*shelf.open(), content).digest;
  flip_byte(blob_path(shelf.root, digest), 7);
  const auto store = shelf.open("boot-2");
  const auto rotten = store->find(digest);
  REQUIRE(rotten);
  CHECK(content_of(put(*store, content)) == content);
  CHECK(content_of(*store->find(digest)) == content);
  CHECK(store->verified_this_boot(digest));
  CHECK(store->midstates(digest) == hash(content).midstates);
  CHECK(store->usage().blobs == 1);
  CHECK(store->usage().evicted_open_bytes == content.size());

  // Verified now: the next one like it is dropped.
  const auto inode = identity_of(*store->find(digest)->fd).inode;
  put(*store, content);
  CHECK(identity_of(*store->find(digest)->fd).inode == inode);
}
