// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
// The FUSE protocol over a socketpair: no mount, no privileges.

#include "fake_kernel.hpp"
#include "mounted.hpp"

#include "fuse/errno.hpp"

#include <catch2/catch_test_macros.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <memory>

using namespace weightfs;
using namespace weightfs::fuse::test;

namespace {

constexpr std::size_t kWeights = 3 * 1024 * 1024 + 17;

std::string weights() {
  std::string text(kWeights, '\0');
  std::uint32_t value = 1;
  for (char& c : text) c = static_cast<char>((value = value * 1664525 + 1013904223) >> 24);
  return text;
}

struct Fixture {
  Fixture() : memory(keeper::SessionMemory::create()) {
    std::filesystem::create_directories(scratch.path() / "model/sub");
    write("model/config.json", "{}");
    write("model/sub/w.safetensors", weights());
    write("model/empty", "");
    start();
    daemon->add("org/name", scratch.path() / "model");
  }
  void write(const std::string& path, const std::string& content) const {
    std::ofstream(scratch.path() / path, std::ios::binary) << content;
  }
  void start() {
    daemon.reset();
    daemon = std::make_unique<Mounted>(Mounted::World{.directory = scratch.path(),
                                                      .memory = memory,
                                                      .kernel = kernel,
                                                      .backings = backings,
                                                      .passthrough = passthrough,
                                                      .boot_id = boot_id,
                                                      .checks = checks});
  }
  std::uint64_t node(const std::string& path) {
    const Reply reply = kernel.walk(path);
    REQUIRE(reply.error == 0);
    return reply.as<fuse_entry_out>().nodeid;
  }
  Reply open(std::uint64_t node) { return kernel.call(FUSE_OPEN, node, fuse_open_in{}); }
  void release(std::uint64_t node) {
    CHECK(kernel.call(FUSE_RELEASE, node, fuse_release_in{}).error == 0);
  }
  std::string read_all(std::uint64_t node) {
    std::string all;
    for (;;) {
      const Reply part = kernel.read(node, all.size(), 1 << 20);
      REQUIRE(part.error == 0);
      if (part.payload.empty()) return all;
      all += part.text();
    }
  }

  ScratchDirectory scratch;
  keeper::SessionMemory memory;
  FakeKernel kernel;
  FakeBackings backings;
  bool passthrough = true;
  std::string boot_id = "this boot";
  vfs::CheckPolicy checks = vfs::CheckPolicy::kBoot;
  std::unique_ptr<Mounted> daemon;
};

// Looks a path up until its node is such a one.
template <class Predicate>
std::uint64_t node_that(Fixture& fixture, const std::string& path, Predicate predicate) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < deadline) {
    const std::uint64_t now = fixture.node(path);
    if (predicate(now)) return now;
  }
  FAIL("no such node in time");
  return 0;
}

// Reads a file to its end and waits until it has a complete node.
std::uint64_t complete(Fixture& fixture, const std::string& path) {
  const std::uint64_t node = fixture.node(path);
  CHECK(fixture.open(node).error == 0);
  fixture.read_all(node);
  fixture.release(node);
  return node_that(fixture, path, [](std::uint64_t now) { return (now & 1) != 0; });
}

}  // namespace

TEST_CASE("INIT negotiates what the mount relies on", "[fuse]") {
  Fixture fixture;
  const Reply reply = fixture.kernel.init();
  REQUIRE(reply.error == 0);
  const auto out = reply.as<fuse_init_out>();
  CHECK(out.max_pages == 256);
  CHECK(out.max_background == 256);
  CHECK((out.flags & FUSE_EXPLICIT_INVAL_DATA) != 0);
  CHECK((out.flags & FUSE_WRITEBACK_CACHE) == 0);
}

TEST_CASE("names, revisions and snapshot ids lead to the same inode", "[fuse]") {
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  const Reply by_name = fixture.kernel.walk("org/name/config.json");
  REQUIRE(by_name.error == 0);
  const auto entry = by_name.as<fuse_entry_out>();
  CHECK(entry.attr.size == 2);
  CHECK((entry.attr.mode & 07777) == 0444);

  const std::string key = fixture.daemon->catalog.find("org/name")->current.hex();
  const auto by_revision = fixture.kernel.walk("org/name@" + key + "/config.json");
  REQUIRE(by_revision.error == 0);
  CHECK(by_revision.as<fuse_entry_out>().attr.ino == entry.attr.ino);
  // A directory has one name only in the kernel, so another way to it is another node.
  CHECK(by_revision.as<fuse_entry_out>().nodeid != entry.nodeid);

  CHECK(fixture.kernel.walk("org").as<fuse_entry_out>().entry_valid == 0);
  CHECK(fixture.kernel.walk("nowhere").error == -ENOENT);
  // Within a revision the kernel may remember that there is no such file.
  const Reply missing = fixture.kernel.walk("org/name/missing");
  CHECK(missing.error == 0);
  CHECK(missing.as<fuse_entry_out>().nodeid == 0);
  CHECK(missing.as<fuse_entry_out>().entry_valid > 0);
}

TEST_CASE("a file is read through its filling node, then has a complete one", "[fuse]") {
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  fixture.daemon->wait_until_ready();
  const std::uint64_t filling = fixture.node("org/name/sub/w.safetensors");
  CHECK((filling & 1) == 0);
  const Reply opened = fixture.open(filling);
  REQUIRE(opened.error == 0);
  CHECK((opened.as<fuse_open_out>().open_flags & FOPEN_KEEP_CACHE) != 0);
  CHECK(fixture.read_all(filling) == weights());
  fixture.release(filling);

  const std::uint64_t whole = complete(fixture, "org/name/sub/w.safetensors");
  CHECK(whole == filling + 1);
  const Reply passed = fixture.open(whole);
  REQUIRE(passed.error == 0);
  constexpr std::uint32_t kPassthrough = 1 << 7;  // FOPEN_PASSTHROUGH, newer than some headers
  CHECK((passed.as<fuse_open_out>().open_flags & kPassthrough) != 0);
  CHECK((passed.as<fuse_open_out>().open_flags & FOPEN_KEEP_CACHE) == 0);
  // READ must work on it all the same: fadvise and readahead reach the daemon.
  CHECK(fixture.kernel.read(whole, 5, 100).text() == weights().substr(5, 100));
  fixture.release(whole);
  CHECK(fixture.backings.open == 0);
  CHECK(fixture.kernel.notifications(1).front() == FUSE_NOTIFY_INVAL_ENTRY);
}

TEST_CASE("all opens of a complete node share one backing id until the last release", "[fuse]") {
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  fixture.daemon->wait_until_ready();
  const std::uint64_t whole = complete(fixture, "org/name/sub/w.safetensors");
  const int before = fixture.backings.opened;
  REQUIRE(fixture.open(whole).error == 0);
  REQUIRE(fixture.open(whole).error == 0);
  CHECK(fixture.backings.opened == before + 1);
  fixture.release(whole);
  CHECK(fixture.backings.open == 1);

  SECTION("also over a restart of the daemon") {
    fixture.start();
    fixture.daemon->wait_until_ready();
    REQUIRE(fixture.open(whole).error == 0);
    CHECK(fixture.backings.opened == before + 2);  // the probe of the new daemon
    fixture.release(whole);
    CHECK(fixture.backings.open == 1);
  }
  fixture.release(whole);
  CHECK(fixture.backings.open == 0);
}

TEST_CASE("a successor understands the node ids that its predecessor gave out", "[fuse]") {
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  const std::uint64_t node = fixture.node("org/name/sub/w.safetensors");
  REQUIRE(fixture.open(node).error == 0);
  CHECK(fixture.kernel.read(node, 0, 10).text() == weights().substr(0, 10));
  fixture.start();
  CHECK(fixture.read_all(node) == weights());
  fixture.release(node);
  CHECK(fixture.daemon->filesystem.counters().open_files == 0);
}

TEST_CASE("requests that wait in the kernel while there is no daemon are answered by the next",
          "[fuse]") {
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  const std::uint64_t node = fixture.node("org/name/config.json");
  fixture.daemon.reset();
  const fuse_getattr_in in = {};
  const std::uint64_t waiting =
      fixture.kernel.send(FUSE_GETATTR, node, std::as_bytes(std::span(&in, 1)));
  fixture.start();
  CHECK(fixture.kernel.wait(waiting).as<fuse_attr_out>().attr.size == 2);
  // The successor asked for what its predecessor had taken.
  constexpr std::int32_t kResend = 7;
  CHECK(fixture.kernel.notifications(1).front() == kResend);
}

TEST_CASE("after a boot a blob is checked before it is passed through", "[fuse]") {
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  fixture.daemon->wait_until_ready();
  const std::string path = "org/name/sub/w.safetensors";
  const std::uint64_t whole = complete(fixture, path);
  fixture.boot_id = "another boot";

  SECTION("an intact one gets its passthrough node once that is known") {
    fixture.start();
    fixture.daemon->wait_until_ready();
    const std::uint64_t checked = fixture.node(path);
    CHECK(checked == whole - 1);
    REQUIRE(fixture.open(checked).error == 0);
    CHECK(fixture.read_all(checked) == weights());
    fixture.release(checked);
    CHECK(complete(fixture, path) == whole);
  }
  SECTION("a damaged one is never read, and fetched again") {
    const Digest digest = Digest::of(weights());
    const auto file =
        fixture.scratch.path() / "store/blobs/sha256" / digest.hex().substr(0, 2) / digest.hex();
    struct stat before = {};
    REQUIRE(::stat(file.c_str(), &before) == 0);
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    {
      std::fstream damaged(file, std::ios::in | std::ios::out | std::ios::binary);
      damaged.seekp(1'000'000);
      damaged.put(static_cast<char>(~weights()[1'000'000]));
    }
    const timespec times[] = {before.st_atim, before.st_mtim};
    REQUIRE(::utimensat(AT_FDCWD, file.c_str(), times, 0) == 0);
    fixture.start();
    fixture.daemon->wait_until_ready();
    const std::uint64_t checked = fixture.node(path);
    REQUIRE(fixture.open(checked).error == 0);
    CHECK(fixture.kernel.read(checked, 1'000'000, 4096).error == -EIO);
    fixture.release(checked);
    // No page of the damaged blob can be met there.
    const std::uint64_t mended =
        node_that(fixture, path, [&](std::uint64_t now) { return now != checked; });
    REQUIRE(fixture.open(mended).error == 0);
    CHECK(fixture.read_all(mended) == weights());
    fixture.release(mended);
  }
  SECTION("with verify_open=never it is passed through as it is") {
    fixture.checks = vfs::CheckPolicy::kNever;
    fixture.start();
    fixture.daemon->wait_until_ready();
    CHECK(fixture.node(path) == whole);
  }
  SECTION("with verify_open=always it never is") {
    fixture.checks = vfs::CheckPolicy::kAlways;
    fixture.boot_id = "this boot";
    fixture.start();
    fixture.daemon->wait_until_ready();
    const std::uint64_t checked = fixture.node(path);
    CHECK(checked == whole - 1);
    REQUIRE(fixture.open(checked).error == 0);
    CHECK(fixture.read_all(checked) == weights());
    fixture.release(checked);
    CHECK(fixture.node(path) == checked);
  }
}

TEST_CASE("directories list everything once, in both forms", "[fuse]") {
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  const std::uint64_t directory = fixture.node("org/name");
  std::vector<std::string> names;
  fuse_read_in in = {};
  in.size = 200;  // so small that several calls are needed
  for (;;) {
    const Reply reply = fixture.kernel.call(FUSE_READDIR, directory, in);
    REQUIRE(reply.error == 0);
    if (reply.payload.empty()) break;
    for (std::size_t at = 0; at < reply.payload.size();) {
      fuse_dirent entry = {};
      std::memcpy(&entry, reply.payload.data() + at, FUSE_NAME_OFFSET);
      names.push_back(reply.text().substr(at + FUSE_NAME_OFFSET, entry.namelen));
      in.offset = entry.off;
      at += FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + entry.namelen);
    }
  }
  CHECK(names == std::vector<std::string>{".", "..", "config.json", "empty", "sub"});
  in = {};
  in.size = 4096;
  const Reply plus = fixture.kernel.call(FUSE_READDIRPLUS, directory, in);
  CHECK(plus.error == 0);
  CHECK(plus.text().find("config.json") != std::string::npos);
}

TEST_CASE("an empty file opens and reads as empty", "[fuse]") {
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  const std::uint64_t node = fixture.node("org/name/empty");
  REQUIRE(fixture.open(node).error == 0);
  CHECK(fixture.kernel.read(node, 0, 4096).payload.empty());
  fixture.release(node);
}

TEST_CASE("extended attributes answer length, value, and what does not exist", "[fuse]") {
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  const std::uint64_t node = fixture.node("org/name/config.json");
  const auto get = [&](std::uint32_t size, const std::string& name) {
    fuse_getxattr_in in = {};
    in.size = size;
    std::vector<std::byte> body(sizeof in + name.size() + 1);
    std::memcpy(body.data(), &in, sizeof in);
    std::memcpy(body.data() + sizeof in, name.c_str(), name.size() + 1);
    return fixture.kernel.call(FUSE_GETXATTR, node, std::span<const std::byte>(body));
  };
  CHECK(get(100, "user.weightfs.state").text() == "absent");
  CHECK(get(0, "user.weightfs.state").as<fuse_getxattr_out>().size == 6);
  CHECK(get(3, "user.weightfs.state").error == -ERANGE);
  CHECK(get(100, "security.selinux").error == -ENODATA);
}

TEST_CASE("a snapshot that left the catalog makes its nodes stale", "[fuse]") {
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  const std::uint64_t node = fixture.node("org/name/config.json");
  fixture.daemon->catalog.remove("org/name");
  CHECK(fixture.kernel.call(FUSE_GETATTR, node, fuse_getattr_in{}).error == -ESTALE);
  CHECK(fixture.open(node).error == -ESTALE);
  CHECK(fixture.kernel.walk("org/name").error == -ENOENT);
}

TEST_CASE("every error code has an errno, and a change is stale on a path but an error in a read",
          "[fuse]") {
  using fuse::Call;
  using fuse::to_errno;
  CHECK(to_errno(Errc::kChanged, Call::kPath) == ESTALE);
  CHECK(to_errno(Errc::kChanged, Call::kRead) == EIO);
  CHECK(to_errno(Errc::kTimedOut, Call::kRead) == ETIMEDOUT);
  CHECK(to_errno(Errc::kPermission, Call::kPath) == EACCES);
  CHECK(to_errno(Errc::kNoSpace, Call::kRead) == EIO);
  CHECK(to_errno(Errc::kCancelled, Call::kRead) == EINTR);
}
