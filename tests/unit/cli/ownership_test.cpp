// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/ownership.hpp"

#include "../control/temporary_directory.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/process_lock.hpp"
#include "store/layout.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace weightfs;
using namespace weightfs::cli;
using Catch::Matchers::ContainsSubstring;
using weightfs::tests::TemporaryDirectory;

namespace {

namespace fs = std::filesystem;

const DirectoryKind kStore{"the store", store::foreign_entry};
const ProcessUser kUser{.name = "somebody", .uid = 54321, .gid = 54322};

struct stat status_of(const fs::path& path) {
  struct stat status = {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status;
}

bool is_given(const fs::path& path) {
  const struct stat status = status_of(path);
  return status.st_uid == kUser.uid && status.st_gid == kUser.gid;
}

void require_root() {
  if (::geteuid() != 0) SKIP("giving files away needs root");
}

}  // namespace

TEST_CASE("a store is given to its user with all that is in it") {
  require_root();
  const TemporaryDirectory place;
  const fs::path store = place.path() / "new" / "store";
  give_directory(store, kUser, kStore);
  CHECK(is_given(store));
  CHECK_FALSE(is_given(store.parent_path()));

  const fs::path old = place.path() / "old";
  fs::create_directories(old / "blobs/sha256/ab");
  fs::create_directories(old / "lost+found");
  write_file_durably(old / "VERSION", "weightfs store 1\n");
  write_file_durably(old / "lock", "");
  write_file_durably(old / "blobs/sha256/ab/file", "data");
  give_directory(old, kUser, kStore);
  for (const char* name : {"", "blobs", "blobs/sha256/ab", "blobs/sha256/ab/file", "lock"}) {
    CAPTURE(name);
    CHECK(is_given(old / name));
  }
  CHECK_FALSE(is_given(old / "lost+found"));
}

TEST_CASE("what is not ours is refused, and nothing is changed") {
  require_root();
  const TemporaryDirectory place;
  fs::create_directories(place.path() / "store/blobs");
  write_file_durably(place.path() / "store/thesis.tex", "years");
  write_file_durably(place.path() / "store/VERSION", "weightfs store 1\n");
  CHECK_THROWS_AS(give_directory(place.path() / "store", kUser, kStore), Error);
  CHECK_FALSE(is_given(place.path() / "store"));
  CHECK_FALSE(is_given(place.path() / "store/blobs"));
}

TEST_CASE("another cache's folder of blobs is not taken for a store") {
  require_root();
  const TemporaryDirectory place;
  fs::create_directories(place.path() / "cache/blobs");
  CHECK_THROWS_AS(give_directory(place.path() / "cache", kUser, kStore), Error);
  CHECK_FALSE(is_given(place.path() / "cache/blobs"));
}

TEST_CASE("what a store holds for a moment does not make it somebody else's") {
  require_root();
  const TemporaryDirectory place;
  const fs::path store = place.path() / "store";
  fs::create_directories(store);
  for (const char* name : {"VERSION", "VERSION.tmp", "index.db", "index.db-journal", "index.db-shm",
                           "index.db.tmp", "index.db-wal", "lock"}) {
    write_file_durably(store / name, "");
  }
  give_directory(store, kUser, kStore);
  CHECK(is_given(store / "index.db-journal"));
}

TEST_CASE("a directory that is in use is not taken from its user") {
  require_root();
  const TemporaryDirectory place;
  const fs::path store = place.path() / "store";
  fs::create_directories(store / "blobs");
  write_file_durably(store / "VERSION", "weightfs store 1\n");
  {
    const ProcessLock lock(store / "lock", "the store");
    CHECK_THROWS_WITH(give_directory(store, kUser, kStore), ContainsSubstring("in use by process"));
    for (const char* name : {"", "blobs", "VERSION", "lock"}) CHECK_FALSE(is_given(store / name));

    REQUIRE(::lchown(store.c_str(), kUser.uid, kUser.gid) == 0);
    CHECK_NOTHROW(give_directory(store, kUser, kStore));  // its own: there is nothing to change
    REQUIRE(::lchown(store.c_str(), 0, 0) == 0);
  }
  give_directory(store, kUser, kStore);
  CHECK(is_given(store / "lock"));
}

TEST_CASE("root gives away nothing that a user has put into a directory of its own") {
  require_root();
  const TemporaryDirectory place;
  const fs::path store = place.path() / "store";
  fs::create_directories(store / "blobs");
  write_file_durably(store / "VERSION", "weightfs store 1\n");
  write_file_durably(place.path() / "secret", "of root");

  SECTION("by a second name of it") {
    fs::create_hard_link(place.path() / "secret", store / "blobs/link");
    give_directory(store, kUser, kStore);
    CHECK(is_given(store / "blobs"));
  }
  SECTION("by a symbolic link to it") {
    fs::create_symlink(place.path() / "secret", store / "blobs/link");
    fs::create_symlink(place.path(), store / "partial");
    fs::create_symlink(place.path() / "secret", store / "lock");
    give_directory(store, kUser, kStore);
    CHECK(is_given(store / "blobs"));
    CHECK_FALSE(is_given(place.path()));
  }
  SECTION("in one that was given before, which is not walked through again") {
    REQUIRE(::lchown(store.c_str(), kUser.uid, kUser.gid) == 0);
    write_file_durably(store / "blobs/file", "of root");
    give_directory(store, kUser, kStore);
    CHECK_FALSE(is_given(store / "blobs/file"));
  }
  CHECK_FALSE(is_given(place.path() / "secret"));
}

TEST_CASE("a store that is reached through a link is given, not the link") {
  require_root();
  const TemporaryDirectory place;
  fs::create_directories(place.path() / "disk");
  fs::create_symlink(place.path() / "disk", place.path() / "store");
  give_directory(place.path() / "store", kUser, kStore);
  CHECK(is_given(place.path() / "disk"));
  CHECK_FALSE(is_given(place.path() / "store"));
}

TEST_CASE("every file of a state directory is known as such, and nothing else is") {
  const std::vector<std::string> ours = {"catalog.json",        "leases.json", "leases.json.tmp",
                                         "leases.json.damaged", "uses",        "events.jsonl"};
  CHECK_FALSE(foreign_to_state(ours));
  CHECK(foreign_to_state(std::vector<std::string>{"leases.json", "thesis.tex"}) == "thesis.tex");
}
