// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
// The layout of the Hub's cache, by the kernel's own calls.

#include "fixture.hpp"

#include "digest/git_blob.hpp"
#include "snapshot/hub_reference.hpp"

#include <string>
#include <vector>

using namespace weightfs;
using namespace weightfs::fuse::test;

namespace {

const std::string kCommit(40, 'a');
const std::string kFolder = ".hub/models--org--repo";

void add(Fixture& fixture, const std::string& commit, const std::string& content,
         bool flip = false) {
  std::vector<snapshot::File> files;
  for (const char* path : {"config.json", "sub/config.json"}) {
    files.push_back({.path = path,
                     .size = content.size(),
                     .sha256 = Digest::of(content),
                     .validator = snapshot::HubVersion{commit, git_blob_id(content)}.text()});
  }
  auto& catalog = fixture.daemon->catalog;
  const auto made = std::make_shared<const snapshot::Snapshot>("hf://org/repo", commit, files);
  flip ? catalog.flip("my/repo", made) : catalog.add("my/repo", "hf://org/repo", made);
}

fuse_entry_out entry(Fixture& fixture, const std::string& path) {
  const Reply reply = fixture.kernel.walk(path);
  REQUIRE(reply.error == 0);
  return reply.as<fuse_entry_out>();
}

}  // namespace

TEST_CASE("links in a snapshot of the Hub's cache lead to blobs that are the model's own nodes",
          "[fuse]") {
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  add(fixture, kCommit, "{}");
  const std::string blob = git_blob_id("{}");
  const fuse_entry_out link =
      entry(fixture, kFolder + "/snapshots/" + kCommit + "/sub/config.json");
  CHECK((link.attr.mode & S_IFMT) == S_IFLNK);
  const Reply target = fixture.kernel.call(FUSE_READLINK, link.nodeid);
  REQUIRE(target.error == 0);
  CHECK(target.text() == "../../../blobs/" + blob);
  CHECK(link.attr.size == target.text().size());
  CHECK(link.entry_valid > 0);

  const fuse_entry_out found = entry(fixture, kFolder + "/blobs/" + blob);
  const fuse_entry_out named = entry(fixture, "my/repo/config.json");
  CHECK(found.nodeid == named.nodeid);
  CHECK(found.attr.ino == named.attr.ino);
  CHECK(fixture.kernel.call(FUSE_READLINK, named.nodeid).error == -EIO);
  CHECK(fixture.kernel.walk(kFolder + "/blobs/none").error == -ENOENT);
}

TEST_CASE("generated files are read, over a restart and after their model has gone", "[fuse]") {
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  add(fixture, kCommit, "{}");
  const fuse_entry_out main = entry(fixture, kFolder + "/refs/main");
  CHECK((main.attr.mode & S_IFMT) == S_IFREG);
  CHECK(main.attr.size == kCommit.size());
  CHECK(main.entry_valid == 0);
  CHECK(main.attr_valid > 0);
  REQUIRE(fixture.open(main.nodeid).error == 0);
  CHECK(fixture.read_all(main.nodeid) == kCommit);
  CHECK(fixture.kernel.read(main.nodeid, 38, 100).text() == "aa");
  CHECK(fixture.daemon->filesystem.counters().open_files == 1);

  fixture.start();
  CHECK(fixture.daemon->filesystem.counters().open_files == 1);
  CHECK(entry(fixture, kFolder + "/refs/main").nodeid == main.nodeid);
  CHECK(fixture.read_all(main.nodeid) == kCommit);
  fixture.daemon->catalog.remove("my/repo");
  CHECK(fixture.read_all(main.nodeid) == kCommit);
  fixture.release(main.nodeid);
  CHECK(fixture.daemon->filesystem.counters().open_files == 0);
  CHECK(fixture.kernel.walk(kFolder).error == -ENOENT);
}

TEST_CASE("what a reference says of another commit is another node", "[fuse]") {
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  add(fixture, kCommit, "{}");
  const std::string next(40, 'b');
  const std::uint64_t before = fixture.node(kFolder + "/refs/main");
  add(fixture, next, "{\"next\": 1}", true);
  const std::uint64_t after = fixture.node(kFolder + "/refs/main");
  CHECK(before != after);
  for (const auto& [node, text] : {std::pair(before, kCommit), std::pair(after, next)}) {
    REQUIRE(fixture.open(node).error == 0);
    CHECK(fixture.read_all(node) == text);
    fixture.release(node);
  }
  CHECK(fixture.node(kFolder + "/blobs/" + git_blob_id("{}")) ==
        fixture.node("my/repo@" + kCommit + "/config.json"));
}

TEST_CASE("nothing in the layout of the Hub's cache can be taken for what it is not", "[fuse]") {
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  add(fixture, kCommit, "{}");
  const std::uint64_t link = fixture.node(kFolder + "/snapshots/" + kCommit + "/config.json");
  CHECK(fixture.open(link).error == -EIO);
  CHECK(fixture.open(fixture.node(kFolder + "/blobs")).error == -EIO);
  for (const char* path : {"", "/blobs", "/refs/main", "/snapshots", "/trees"}) {
    const vfs::NodeId node(fixture.node(kFolder + path));
    CHECK(fixture.daemon->filesystem.attribute_names(node).empty());
  }
  auto& filesystem = fixture.daemon->filesystem;
  const auto led = filesystem.walk(kFolder + "/snapshots/" + kCommit + "/config.json");
  REQUIRE(led);
  REQUIRE(led->file() != nullptr);
  CHECK(led->tree.path == "my/repo");
  CHECK_FALSE(filesystem.walk(kFolder + "/refs/main/x"));
}
