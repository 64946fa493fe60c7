// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "vfs/snapshot_tree.hpp"

#include <catch2/catch_test_macros.hpp>

using weightfs::snapshot::File;
using weightfs::snapshot::Snapshot;
using weightfs::vfs::SnapshotTree;

namespace {

File file(std::string path, std::int64_t mtime = 0) {
  File result;
  result.path = std::move(path);
  result.size = 1;
  result.mtime = mtime;
  result.sha256 = weightfs::Digest::of(result.path);
  return result;
}

}  // namespace

TEST_CASE("every file and directory is found by path and by name") {
  const Snapshot snapshot("file:///m", "r",
                          {file("a-b/x"), file("a/c/d", 7), file("a/b", 5), file("z")});
  const SnapshotTree tree(snapshot);
  CHECK(tree.size() == 8);  // root, a, a/b, a/c, a/c/d, a-b, a-b/x, z
  for (const char* path : {"", "a", "a/b", "a/c", "a/c/d", "a-b", "a-b/x", "z"}) {
    const auto index = tree.find(path);
    REQUIRE(index);
    CHECK(tree.path(*index) == path);
  }
  CHECK_FALSE(tree.find("a/x"));
  CHECK_FALSE(tree.find("z/b"));
  CHECK(tree.node(8) == nullptr);
}

TEST_CASE("children are sorted by name although '-' sorts before '/'") {
  const Snapshot snapshot("file:///m", "r", {file("a-b"), file("a/x")});
  const SnapshotTree tree(snapshot);
  const auto& children = tree.node(0)->children;
  REQUIRE(children.size() == 2);
  CHECK(tree.node(children[0])->name == "a");
  CHECK(tree.node(children[1])->name == "a-b");
  CHECK(tree.child(0, "a"));
  CHECK(tree.child(0, "a-b"));
}

TEST_CASE("indices depend on the paths only") {
  const Snapshot one("file:///m", "r", {file("b", 1), file("a/x", 2)});
  const Snapshot two("http://h/m/", "other", {file("a/x", 9), file("b", 8)});
  CHECK(SnapshotTree(one).find("a/x") == SnapshotTree(two).find("a/x"));
  CHECK(SnapshotTree(one).find("b") == SnapshotTree(two).find("b"));
}

TEST_CASE("a directory is as new as the newest file below it") {
  const Snapshot snapshot("file:///m", "r", {file("a/c/d", 7), file("a/b", 5), file("z", 6)});
  const SnapshotTree tree(snapshot);
  CHECK(tree.node(*tree.find("a"))->mtime == 7);
  CHECK(tree.node(*tree.find("a/c"))->mtime == 7);
  CHECK(tree.node(0)->mtime == 7);
}

TEST_CASE("files are found by their index in the snapshot") {
  const Snapshot snapshot("file:///m", "r", {file("b"), file("a/x")});
  const SnapshotTree tree(snapshot);
  for (std::size_t i = 0; i < snapshot.files().size(); ++i) {
    CHECK(tree.path(tree.index_of_file(i)) == snapshot.files()[i].path);
  }
}
