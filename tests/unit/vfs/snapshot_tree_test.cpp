// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "vfs/snapshot_tree.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <string_view>

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

/// The index of a path, component by component.
std::optional<std::uint32_t> find(const SnapshotTree& tree, std::string_view path) {
  std::uint32_t index = 0;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const auto next = tree.child(index, path.substr(0, end));
    if (!next) return std::nullopt;
    index = *next;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return index;
}

}  // namespace

TEST_CASE("every file and directory is found by path and by name") {
  const Snapshot snapshot("file:///m", "r",
                          {file("a-b/x"), file("a/c/d", 7), file("a/b", 5), file("z")});
  const SnapshotTree tree(snapshot);
  for (const char* path : {"", "a", "a/b", "a/c", "a/c/d", "a-b", "a-b/x", "z"}) {
    const auto index = find(tree, path);
    REQUIRE(index);
    CHECK(tree.path(*index) == path);
  }
  CHECK_FALSE(find(tree, "a/x"));
  CHECK_FALSE(find(tree, "z/b"));
  CHECK(tree.node(7) != nullptr);  // root, a, a/b, a/c, a/c/d, a-b, a-b/x, z
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
  CHECK(find(SnapshotTree(one), "a/x") == find(SnapshotTree(two), "a/x"));
  CHECK(find(SnapshotTree(one), "b") == find(SnapshotTree(two), "b"));
}

TEST_CASE("a directory is as new as the newest file below it") {
  const Snapshot snapshot("file:///m", "r", {file("a/c/d", 7), file("a/b", 5), file("z", 6)});
  const SnapshotTree tree(snapshot);
  CHECK(tree.node(*find(tree, "a"))->mtime == 7);
  CHECK(tree.node(*find(tree, "a/c"))->mtime == 7);
  CHECK(tree.node(0)->mtime == 7);
}
