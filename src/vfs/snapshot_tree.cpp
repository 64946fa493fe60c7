// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "vfs/snapshot_tree.hpp"

#include "base/error.hpp"
#include "vfs/node_id.hpp"

#include <algorithm>
#include <map>

namespace weightfs::vfs {

namespace {

struct Item {
  std::optional<std::uint32_t> file;
  std::int64_t mtime = 0;
};

// Every directory and file by path. A map sorts them bytewise, which is the numbering.
std::map<std::string_view, Item> all_paths(const snapshot::Snapshot& snapshot) {
  std::map<std::string_view, Item> paths;
  const auto& files = snapshot.files();
  for (std::uint32_t i = 0; i < files.size(); ++i) {
    const std::string_view path = files[i].path;
    paths[path] = {i, files[i].mtime};
    for (std::size_t slash = path.find('/'); slash != std::string_view::npos;
         slash = path.find('/', slash + 1)) {
      Item& directory = paths[path.substr(0, slash)];
      directory.mtime = std::max(directory.mtime, files[i].mtime);
    }
  }
  return paths;
}

}  // namespace

SnapshotTree::SnapshotTree(const snapshot::Snapshot& snapshot) {
  const auto paths = all_paths(snapshot);
  if (paths.size() > NodeId::kMaxIndex) {
    throw Error(Errc::kUnsupported, "a snapshot of " + std::to_string(paths.size()) +
                                        " files and directories is more than node ids can number");
  }
  nodes_.resize(paths.size() + 1);
  files_.resize(snapshot.files().size());
  std::map<std::string_view, std::uint32_t> directories{{"", 0}};
  std::uint32_t index = 0;
  for (const auto& [path, item] : paths) {
    ++index;
    const std::size_t slash = path.rfind('/');
    const bool at_root = slash == std::string_view::npos;
    Node& node = nodes_[index];
    node.name = path.substr(at_root ? 0 : slash + 1);
    node.parent = directories.at(at_root ? std::string_view() : path.substr(0, slash));
    node.mtime = item.mtime;
    node.file = item.file;
    nodes_[node.parent].children.push_back(index);
    nodes_[0].mtime = std::max(nodes_[0].mtime, item.mtime);
    if (item.file) {
      files_[*item.file] = index;
    } else {
      directories.emplace(path, index);
    }
  }
  // "a-b" sorts before "a/x" among paths, so the children of a directory are in order by accident
  // only.
  for (Node& node : nodes_) {
    std::sort(node.children.begin(), node.children.end(),
              [&](std::uint32_t a, std::uint32_t b) { return nodes_[a].name < nodes_[b].name; });
  }
}

std::optional<std::uint32_t> SnapshotTree::child(std::uint32_t directory,
                                                 std::string_view name) const noexcept {
  const Node* parent = node(directory);
  if (parent == nullptr) return std::nullopt;
  const auto found = std::lower_bound(
      parent->children.begin(), parent->children.end(), name,
      [&](std::uint32_t index, std::string_view wanted) { return nodes_[index].name < wanted; });
  if (found == parent->children.end() || nodes_[*found].name != name) return std::nullopt;
  return *found;
}

std::string SnapshotTree::path(std::uint32_t index) const {
  std::string path;
  for (; index != 0; index = nodes_[index].parent) {
    path = path.empty() ? nodes_[index].name : nodes_[index].name + "/" + path;
  }
  return path;
}

}  // namespace weightfs::vfs
