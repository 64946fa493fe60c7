// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
// The FUSE protocol over a socketpair: no mount, no privileges.

#include "fixture.hpp"

#include "fuse/errno.hpp"
#include "store/index.hpp"

#include <fmt/format.h>

using namespace weightfs;
using namespace weightfs::fuse::test;

namespace {

/// What the index of a store that nobody has open says of a blob.
std::optional<store::IndexRow> index_row(const std::filesystem::path& store, const Digest& digest) {
  struct statx status{};
  REQUIRE(::statx(AT_FDCWD, (store / "blobs/sha256").c_str(), 0, STATX_INO | STATX_BTIME,
                  &status) == 0);
  const auto index = store::Index::open(
      store / "index.db", fmt::format("{}:{}.{:09}", status.stx_ino, status.stx_btime.tv_sec,
                                      status.stx_btime.tv_nsec));
  REQUIRE(index);
  return index->find(digest);
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
  // Else the opener would wait in the kernel for the pages that others read.
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
}

TEST_CASE("an open of a complete file is a use of its blob", "[fuse]") {
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  const std::string path = "org/name/sub/w.safetensors";
  complete(fixture, path);

  fixture.clock_shift = std::chrono::hours(1);
  const auto use = [&] {
    fixture.start();
    fixture.daemon->wait_until_ready();
    const std::uint64_t node = fixture.node(path);
    REQUIRE(fixture.open(node).error == 0);
    fixture.release(node);
    fixture.daemon.reset();
  };
  SECTION("that is passed through") {
    use();
  }
  SECTION("that is checked first") {
    fixture.boot_id = "another boot";
    use();
  }
  const auto row = index_row(fixture.scratch.path() / "store", Digest::of(weights()));
  REQUIRE(row);
  CHECK(row->last_used - row->created >= 3600);
}

TEST_CASE("only names of complete files are believed, and only attributes are ever told",
          "[fuse]") {
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  fixture.daemon->wait_until_ready();
  const std::string path = "org/name/sub/w.safetensors";
  const auto filling = fixture.kernel.walk(path).as<fuse_entry_out>();
  CHECK(filling.entry_valid == 0);
  CHECK(filling.entry_valid_nsec == 0);
  CHECK(filling.attr_valid == 1);
  const std::uint64_t whole = complete(fixture, path);
  const auto shown = fixture.kernel.walk(path).as<fuse_entry_out>();
  CHECK(shown.entry_valid > 3600);
  CHECK(shown.attr_valid > 3600);
  CHECK(shown.attr.blocks == (kWeights + 511) / 512);

  const Digest digest = Digest::of(weights());
  fixture.daemon->store->remove(digest);
  fixture.daemon->filesystem.blob_gone(digest);
  const auto told = fixture.kernel.notifications(2);  // the first asks for requests to be resent
  REQUIRE(told.size() == 2);
  REQUIRE(told[1].error == FUSE_NOTIFY_INVAL_INODE);
  const auto inode = told[1].as<fuse_notify_inval_inode_out>();
  CHECK(inode.ino == whole);
  CHECK(inode.off == -1);  // no pages: that would wait for those that a READ holds
  const Reply now = fixture.kernel.call(FUSE_GETATTR, whole, fuse_getattr_in{});
  CHECK(now.as<fuse_attr_out>().attr.blocks == 0);
  // The kernel believes in the name and is sent to look again.
  CHECK(fixture.open(whole).error == -ESTALE);
  CHECK(fixture.node(path) == filling.nodeid);
}

TEST_CASE("who is sent to look again finds a node that lasts", "[fuse]") {
  const std::string path = "org/name/sub/w.safetensors";
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  fixture.daemon->wait_until_ready();
  const std::uint64_t whole = complete(fixture, path);
  // For a while it is streamed, as in another mode or while the disk is away.
  fixture.daemon->fetcher->set_keep(fetch::Keep::kMemoryOnly);
  REQUIRE(fixture.open(whole).error == -ESTALE);
  const std::uint64_t streamed = fixture.node(path);
  REQUIRE(fixture.open(streamed).error == 0);
  CHECK(fixture.kernel.read(streamed, 0, 100).text() == weights().substr(0, 100));
  fixture.release(streamed);
  REQUIRE(in_time([&] { return fixture.daemon->fetcher->fills().empty(); }));
  fixture.daemon->fetcher->set_keep(fetch::Keep::kStore);
  REQUIRE(fixture.node(path) == whole);
  fixture.daemon->store->remove(Digest::of(weights()));
  // The kernel repeats a walk once.
  CHECK(fixture.open(whole).error == -ESTALE);
  const std::uint64_t node = fixture.node(path);
  REQUIRE(fixture.open(node).error == 0);
  CHECK(fixture.read_all(node) == weights());
  fixture.release(node);
}

TEST_CASE("an open of a file of which only an earlier fill left bytes asks the source", "[fuse]") {
  const std::string path = "org/name/sub/w.safetensors";
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  fixture.daemon->wait_until_ready();
  std::uint64_t node = fixture.node(path);
  REQUIRE(fixture.open(node).error == 0);
  CHECK(fixture.kernel.read(node, 0, 100).text() == weights().substr(0, 100));
  const auto lose = [&] {
    std::filesystem::remove(fixture.scratch.path() / "model/sub/w.safetensors");
  };
  SECTION("and fails where that has gone") {
    fixture.release(node);
    fixture.start();
    fixture.daemon->wait_until_ready();
    lose();
    node = fixture.node(path);
    CHECK(fixture.open(node).error == -ESTALE);
  }
  SECTION("and brings one block, the first that is missing") {
    fixture.release(node);
    fixture.start();
    fixture.daemon->wait_until_ready();
    node = fixture.node(path);
    REQUIRE(fixture.open(node).error == 0);
    CHECK(fixture.daemon->fetcher->counters().source_bytes == store::kBlockSize);
    fixture.release(node);
  }
  SECTION("but not while its fill goes on") {
    lose();
    REQUIRE(fixture.open(node).error == 0);
    fixture.release(node);
    CHECK(fixture.kernel.read(node, 0, 100).text() == weights().substr(0, 100));
    fixture.release(node);
  }
}

TEST_CASE("who has a file open keeps it when its snapshot leaves the catalog", "[fuse]") {
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  fixture.daemon->wait_until_ready();
  std::uint64_t node = fixture.node("org/name/sub/w.safetensors");
  SECTION("while it fills") {
  }
  SECTION("when it is complete") {
    node = complete(fixture, "org/name/sub/w.safetensors");
  }
  REQUIRE(fixture.open(node).error == 0);
  fixture.daemon->catalog.remove("org/name");
  fixture.daemon->store->remove(Digest::of(weights()));
  CHECK(fixture.read_all(node) == weights());
  // A read past the end asks for the size first.
  const Reply status = fixture.kernel.call(FUSE_GETATTR, node, fuse_getattr_in{});
  REQUIRE(status.error == 0);
  CHECK(status.as<fuse_attr_out>().attr.size == kWeights);
  CHECK(fixture.open(node).error == -ESTALE);
  fixture.release(node);
  CHECK(fixture.kernel.call(FUSE_GETATTR, node, fuse_getattr_in{}).error == -ESTALE);
}

TEST_CASE("what a removed model's last reader leaves behind goes with it", "[fuse]") {
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  fixture.daemon->wait_until_ready();
  const auto partials = fixture.scratch.path() / "store/partial";
  const std::uint64_t node = fixture.node("org/name/sub/w.safetensors");
  REQUIRE(fixture.open(node).error == 0);
  CHECK(fixture.kernel.read(node, 0, 100).text() == weights().substr(0, 100));
  bool kept = false;
  SECTION("unless another has the same file") {
    fixture.daemon->add("org/other", fixture.scratch.path() / "model");
    kept = true;
  }
  SECTION("and there is no other") {
  }
  fixture.daemon->catalog.remove("org/name");
  CHECK_FALSE(std::filesystem::is_empty(partials));
  fixture.release(node);
  REQUIRE(in_time([&] { return fixture.daemon->fetcher->fills().empty(); }));
  CHECK(std::filesystem::is_empty(partials) == !kept);
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
