// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/volume.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "store_fixture.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <thread>

using namespace weightfs;
using namespace weightfs::store;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

struct Shelf {
  TemporaryDirectory directory;
  ManualClock clock;
  fs::path root = directory.path() / "store";

  [[nodiscard]] std::unique_ptr<Volume> open(const std::string& boot_id = "boot-1") const {
    return open_volume(root, clock, boot_id);
  }
};

std::pair<Errc, std::string> open_error(const fs::path& directory) {
  const ManualClock clock;
  try {
    (void)open_volume(directory, clock);
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {Errc::kInternal, "opened"};
}

struct stat status_of(const fs::path& path) {
  struct stat status{};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status;
}

}  // namespace

TEST_CASE("a missing or empty directory becomes a store") {
  const Shelf shelf;
  const fs::path nested = shelf.directory.path() / "a" / "b";
  {
    CHECK(open_volume(nested, shelf.clock)->directory() == nested);
  }
  CHECK(read_text(nested / "VERSION") == "weightfs store 1\n");
  CHECK(fs::is_directory(nested / "blobs" / "sha256"));
  CHECK(fs::is_directory(nested / "partial"));
  CHECK(fs::is_directory(nested / "quarantine"));
  CHECK((status_of(nested).st_mode & 0777) == 0700);

  const fs::path empty = shelf.directory.path() / "empty";
  fs::create_directory(empty);
  {
    CHECK(open_volume(empty, shelf.clock)->list().empty());
  }
  CHECK(open_volume(empty, shelf.clock)->usage().blobs == 0);
}

TEST_CASE("a directory with foreign entries is refused, naming the first, and left as it is") {
  const TemporaryDirectory directory;
  write_text(directory.path() / "zebra", "");
  write_text(directory.path() / "letters.txt", "dear");
  const auto [code, message] = open_error(directory.path());
  CHECK(code == Errc::kInvalid);
  CHECK_THAT(message, ContainsSubstring("\"letters.txt\""));
  CHECK(entries_in(directory.path()) == 2);
}

TEST_CASE("another cache that has a folder of the same name is foreign, too") {
  const TemporaryDirectory directory;
  fs::create_directory(directory.path() / "blobs");
  const auto [code, message] = open_error(directory.path());
  CHECK(code == Errc::kInvalid);
  CHECK_THAT(message, ContainsSubstring("\"blobs\""));
  CHECK(entries_in(directory.path()) == 1);
}

TEST_CASE("a store that got a foreign entry is refused") {
  const Shelf shelf;
  (void)shelf.open();
  write_text(shelf.root / "notes", "");
  CHECK(open_error(shelf.root).first == Errc::kInvalid);
  fs::remove(shelf.root / "notes");
  fs::create_directory(shelf.root / "lost+found");  // only a filesystem's root has one
  CHECK_THAT(open_error(shelf.root).second, ContainsSubstring("lost+found"));
}

TEST_CASE("a file is no store") {
  const TemporaryDirectory directory;
  write_text(directory.path() / "file", "");
  CHECK(open_error(directory.path() / "file").first == Errc::kInvalid);
}

TEST_CASE("a store of another version is refused and not rewritten") {
  const Shelf shelf;
  (void)shelf.open();
  for (const char* text : {"weightfs store 2\n", "", "weightfs store 1", "garbage"}) {
    write_text(shelf.root / "VERSION", text);
    CHECK(open_error(shelf.root).first == Errc::kUnsupported);
    CHECK(read_text(shelf.root / "VERSION") == text);
  }
}

TEST_CASE("one store has one user, on the whole machine") {
  const Shelf shelf;
  auto store = shelf.open();
  const auto [code, message] = open_error(shelf.root);
  CHECK(code == Errc::kBusy);
  CHECK_THAT(message, ContainsSubstring(fmt::format("in use by process {}", ::getpid())));
  store.reset();
  CHECK_NOTHROW(shelf.open());
}

TEST_CASE("leftovers of interrupted writes are removed at open") {
  const Shelf shelf;
  (void)shelf.open();
  write_text(shelf.root / "VERSION.tmp", "half");
  write_text(shelf.root / "partial" / "x.tmp", "half");
  write_text(shelf.root / "quarantine" / "x.tmp", "half");
  (void)shelf.open();
  CHECK_FALSE(fs::exists(shelf.root / "VERSION.tmp"));
  CHECK(fs::is_empty(shelf.root / "partial"));
  CHECK(fs::is_empty(shelf.root / "quarantine"));
}

TEST_CASE("a committed blob is found, with its bytes, now and after a restart") {
  const Shelf shelf;
  const std::string content = random_bytes(100'000, 1);
  const Digest digest = Digest::of(content);
  {
    const auto store = shelf.open();
    CHECK_FALSE(store->contains(digest));
    CHECK_FALSE(store->find(digest));
    const Blob blob = put(*store, content);
    CHECK(blob.digest == digest);
    CHECK(blob.size == content.size());
    CHECK(content_of(blob) == content);
    CHECK(store->contains(digest));
    REQUIRE(store->find(digest));
    CHECK((::fcntl(store->find(digest)->fd->value(), F_GETFL) & O_ACCMODE) == O_RDONLY);
  }
  const auto store = shelf.open();
  CHECK(store->contains(digest));
  CHECK(content_of(*store->find(digest)) == content);
  CHECK(store->list() == std::vector<Digest>{digest});
}

TEST_CASE("a blob stands under its digest, read-only, and its partial blob is gone") {
  const Shelf shelf;
  const auto store = shelf.open();
  put(*store, "content");
  const fs::path path = blob_path(shelf.root, Digest::of("content"));
  CHECK(read_text(path) == "content");
  CHECK((status_of(path).st_mode & 07777) == 0444);
  CHECK(fs::is_empty(shelf.root / "partial"));
  CHECK(entries_in(path.parent_path()) == 1);
}

TEST_CASE("an empty blob is a blob") {
  const Shelf shelf;
  Digest digest;
  {
    const auto store = shelf.open();
    const Blob blob = put(*store, "");
    digest = blob.digest;
    CHECK(blob.size == 0);
    CHECK(content_of(blob).empty());
    CHECK(store->verify(digest, nullptr) == VerifyOutcome::kIntact);
    CHECK(store->midstates(digest)->empty());
    CHECK(store->usage().blobs == 1);
  }
  CHECK(shelf.open()->find(digest));
}

TEST_CASE("a blob that is there already is kept, and the second copy dropped") {
  const Shelf shelf;
  const auto store = shelf.open();
  put(*store, "same");
  const auto inode = status_of(blob_path(shelf.root, Digest::of("same"))).st_ino;
  const auto partial = store->partial(Digest::of("a name without the digest"), 4);
  fill(*partial, "same");
  const Blob blob = partial->commit(Digest::of("same"), {});
  CHECK(content_of(blob) == "same");
  CHECK(status_of(blob_path(shelf.root, Digest::of("same"))).st_ino == inode);
  CHECK(fs::is_empty(shelf.root / "partial"));
  CHECK(store->usage().blobs == 1);
  CHECK(store->usage().bytes == 4);
  CHECK(store->usage().partial_bytes == 0);
}

TEST_CASE("a blob whose file is gone is a miss, and dropped") {
  const Shelf shelf;
  const auto store = shelf.open();
  const Digest digest = put(*store, "content").digest;
  fs::remove(blob_path(shelf.root, digest));
  CHECK(store->contains(digest));
  CHECK_FALSE(store->find(digest));
  CHECK_FALSE(store->contains(digest));
  CHECK(store->usage().blobs == 0);
  CHECK(store->usage().quarantined == 0);
  put(*store, "content");
  CHECK(store->find(digest));
}

TEST_CASE("a blob whose file was touched, replaced or cut is a miss, and quarantined") {
  const Shelf shelf;
  const auto store = shelf.open();
  const Digest digest = put(*store, "content").digest;
  const fs::path path = blob_path(shelf.root, digest);
  std::string left;
  SECTION("modification time") {
    fs::last_write_time(path, fs::last_write_time(path) + std::chrono::nanoseconds(1));
    left = "content";
  }
  SECTION("inode") {
    const auto time = fs::last_write_time(path);
    fs::copy_file(path, shelf.directory.path() / "copy");
    fs::rename(shelf.directory.path() / "copy", path);
    fs::last_write_time(path, time);
    left = "content";
  }
  SECTION("size") {
    const auto time = fs::last_write_time(path);
    ::chmod(path.c_str(), 0600);
    fs::resize_file(path, 3);
    fs::last_write_time(path, time);
    left = "con";
  }
  SECTION("a symbolic link") {
    fs::remove(path);
    fs::create_symlink("/etc/hostname", path);
  }
  SECTION("a pipe, which nobody writes into") {
    fs::remove(path);
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  }
  CHECK(store->contains(digest));
  CHECK_FALSE(store->find(digest));
  CHECK_FALSE(store->contains(digest));
  CHECK_FALSE(fs::exists(fs::symlink_status(path)));
  const StoreUsage usage = store->usage();
  CHECK(usage.blobs == 0);
  CHECK(usage.bytes == 0);
  CHECK(usage.quarantined == 1);
  if (!left.empty()) {
    bool found = false;
    for (const auto& entry : fs::directory_iterator(shelf.root / "quarantine")) {
      if (entry.path().extension() != ".txt") found = read_text(entry.path()) == left;
    }
    CHECK(found);
  }
  put(*store, "content");
  CHECK(store->find(digest));
}

TEST_CASE("whoever has a removed blob open keeps it, and its bytes are accounted for") {
  const Shelf shelf;
  const auto store = shelf.open();
  const Digest digest = put(*store, "content").digest;
  std::optional<Blob> blob = store->find(digest);
  CHECK(store->remove(digest) == 7);
  CHECK_FALSE(store->contains(digest));
  CHECK_FALSE(store->find(digest));
  CHECK(content_of(*blob) == "content");
  CHECK(store->usage().evicted_open_bytes == 7);
  CHECK(store->usage().bytes == 0);
  std::optional<Blob> copy = blob;
  blob.reset();
  CHECK(store->usage().evicted_open_bytes == 7);
  copy.reset();
  CHECK(store->usage().evicted_open_bytes == 0);
  CHECK(store->remove(digest) == 0);
}

TEST_CASE("a descriptor outlives its store") {
  const Shelf shelf;
  auto store = shelf.open();
  const Blob blob = put(*store, "content");
  store->remove(blob.digest);
  store.reset();
  CHECK(content_of(blob) == "content");
}

TEST_CASE("removing a blob removes its parts") {
  const Shelf shelf;
  const auto store = shelf.open();
  const Digest digest = put(*store, random_bytes(kPartSize + 1, 2)).digest;
  CHECK(fs::exists(parts_path(shelf.root, digest)));
  CHECK(store->remove(digest) == kPartSize + 1);
  CHECK(fs::is_empty(blob_path(shelf.root, digest).parent_path()));
}

TEST_CASE("a blob that was found bad goes to quarantine with the reason") {
  const Shelf shelf;
  const auto store = shelf.open();
  const Blob blob = put(*store, "content");
  store->quarantine(blob.digest, "the runtime said so");
  CHECK_FALSE(store->contains(blob.digest));
  CHECK(content_of(blob) == "content");
  CHECK(store->usage().quarantined == 1);
  bool noted = false;
  for (const auto& entry : fs::directory_iterator(shelf.root / "quarantine")) {
    if (entry.path().extension() == ".txt") {
      noted = read_text(entry.path()).find("the runtime said so") != std::string::npos;
    }
  }
  CHECK(noted);
  store->quarantine(Digest::of("nobody"), "no such blob");
  CHECK(store->usage().quarantined == 1);
}

TEST_CASE("a judgement on a file that is gone does not touch the one that came in its place") {
  const Shelf shelf;
  const auto store = shelf.open();
  const Blob old = put(*store, "content");
  store->remove(old.digest);
  const Blob fresh = put(*store, "content");
  store->quarantine(old.digest, "checked late", identity_of(*old.fd));
  CHECK(store->find(fresh.digest));
  CHECK(store->usage().quarantined == 0);
  store->quarantine(old.digest, "this very file", identity_of(*fresh.fd));
  CHECK_FALSE(store->find(fresh.digest));
  CHECK(store->usage().quarantined == 1);
}

TEST_CASE("usage counts blobs, partial blobs and the disk") {
  const Shelf shelf;
  const auto store = shelf.open();
  put(*store, "12345");
  put(*store, "123");
  const auto partial = store->partial(Digest::of("key"), 1'000'000);
  const StoreUsage usage = store->usage();
  CHECK(usage.blobs == 2);
  CHECK(usage.bytes == 8);
  CHECK(usage.partial_bytes == 1'000'000);
  CHECK(usage.evicted_open_bytes == 0);
  CHECK(usage.quarantined == 0);
  CHECK(usage.capacity > 0);
  CHECK(usage.free <= usage.capacity);
}

TEST_CASE("a blob is verified in the boot that fetched it and not in the next") {
  const Shelf shelf;
  Digest digest;
  {
    const auto store = shelf.open();
    digest = put(*store, "content").digest;
    CHECK(store->verified_this_boot(digest));
    CHECK_FALSE(store->verified_this_boot(Digest::of("nobody")));
  }
  {
    const auto store = shelf.open("boot-2");
    CHECK_FALSE(store->verified_this_boot(digest));
    store->mark_verified(digest);
    store->mark_verified(Digest::of("nobody"));
    CHECK(store->verified_this_boot(digest));
  }
  CHECK(shelf.open("boot-2")->verified_this_boot(digest));
  {
    const auto store = shelf.open("boot-3");
    CHECK(store->verify(digest, nullptr) == VerifyOutcome::kIntact);
    CHECK(store->verified_this_boot(digest));
  }
  const auto store = shelf.open("");
  store->mark_verified(digest);
  CHECK_FALSE(store->verified_this_boot(digest));
}

TEST_CASE("the midstates of a blob are kept beside it") {
  const Shelf shelf;
  const auto store = shelf.open();
  const std::string content = random_bytes(2 * kPartSize + 100, 3);
  const Hashed hashed = hash(content);
  put(*store, content);
  REQUIRE(hashed.midstates.size() == 2);
  CHECK(store->midstates(hashed.digest) == hashed.midstates);
  CHECK_FALSE(store->midstates(Digest::of("nobody")));
  fs::remove(parts_path(shelf.root, hashed.digest));
  CHECK_FALSE(store->midstates(hashed.digest));
  CHECK(store->verify(hashed.digest, nullptr) == VerifyOutcome::kIntact);
  CHECK(store->midstates(hashed.digest) == hashed.midstates);
}

TEST_CASE("blobs are listed in order") {
  const Shelf shelf;
  const auto store = shelf.open();
  std::vector<Digest> expected;
  for (int i = 0; i < 20; ++i) expected.push_back(put(*store, std::to_string(i)).digest);
  std::sort(expected.begin(), expected.end());
  CHECK(store->list() == expected);
}

TEST_CASE("threads that publish, find and remove the same blobs leave rows and files in step") {
  const Shelf shelf;
  const auto store = shelf.open();
  std::vector<std::string> contents;
  for (int i = 0; i < 5; ++i) contents.push_back(random_bytes(3000, static_cast<std::uint64_t>(i)));
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (unsigned thread = 0; thread < 3; ++thread) {
      threads.emplace_back([&, thread] {
        for (unsigned round = 0; round < 30; ++round) {
          const std::string& content = contents[(round + thread) % contents.size()];
          const Digest digest = Digest::of(content);
          // A key of the thread's own: the same bytes come in under several names.
          const auto partial =
              store->partial(Digest::of(std::to_string(thread) + content), content.size());
          fill(*partial, content);
          if (content_of(partial->commit(digest, {})) != content) ++wrong;
          if (round % 3 == thread) store->remove(digest);
        }
      });
    }
    threads.emplace_back([&] {
      for (unsigned round = 0; round < 1000; ++round) {
        const std::string& content = contents[round % contents.size()];
        const auto blob = store->find(Digest::of(content));
        if (blob && content_of(*blob) != content) ++wrong;
      }
    });
  }
  CHECK(wrong == 0);
  std::vector<Digest> standing;
  std::uint64_t bytes = 0;
  for (const std::string& content : contents) {
    if (!fs::exists(blob_path(shelf.root, Digest::of(content)))) continue;
    standing.push_back(Digest::of(content));
    bytes += content.size();
  }
  std::sort(standing.begin(), standing.end());
  CHECK(store->list() == standing);
  CHECK(store->usage().bytes == bytes);
  CHECK(store->usage().evicted_open_bytes == 0);
  CHECK(store->usage().quarantined == 0);
}
