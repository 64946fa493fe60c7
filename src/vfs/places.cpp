// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "vfs/places.hpp"

#include "base/error.hpp"

#include <algorithm>

namespace weightfs::vfs {

namespace {

using Kind = TreeTable::Kind;

constexpr const char* kSnapshotsName = ".snapshots";

std::string join(const std::string& directory, std::string_view name) {
  return directory.empty() ? std::string(name) : directory + "/" + std::string(name);
}

// Never 0 or 1: readdir implementations skip 0, and 1 is the root of the mount.
std::uint64_t inode_of(const std::string& text) {
  const Digest digest = Digest::of(text);
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) value = value << 8 | digest.bytes()[i];
  return value > 1 ? value : value + 2;
}

}  // namespace

const snapshot::File* Place::file() const {
  if (!is_view() || !node().file) return nullptr;
  return &snapshot->files()[*node().file];
}

std::uint64_t Place::inode() const {
  if (is_view()) return inode_of("file " + snapshot->key().hex() + " " + layout->path(index));
  if (tree.kind == Kind::kSnapshots) return inode_of("snapshots");
  return tree.path.empty() ? 1 : inode_of("namespace " + tree.path);
}

Places::Places(const catalog::Catalog& catalog, SessionLog& log) : catalog_(catalog), trees_(log) {
}

Place Places::at(NodeId node) {
  const auto tree = trees_.find(node.tree());
  if (!tree) throw Error(Errc::kChanged, "a node id of another session");
  Place place;
  place.tree = *tree;
  place.number = node.tree();
  place.index = node.index();
  if (tree->kind != Kind::kView) return place;
  place.snapshot = catalog_.snapshot(tree->key);
  if (!place.snapshot) throw Error(Errc::kChanged, tree->path + " is no longer in the catalog");
  place.layout = layout_of(*place.snapshot);
  if (place.layout->node(place.index) == nullptr) {
    throw Error(Errc::kChanged, "a node id outside of " + tree->path);
  }
  return place;
}

std::optional<Place> Places::child(const Place& directory, const std::string& name) {
  switch (directory.tree.kind) {
    case Kind::kNamespace:
      return child_of_namespace(directory, name);
    case Kind::kSnapshots: {
      const auto id = Digest::parse(name);
      const auto snapshot = id && id->hex() == name ? catalog_.snapshot_by_id(*id) : nullptr;
      if (!snapshot) return std::nullopt;
      return view(join(kSnapshotsName, name), snapshot);
    }
    case Kind::kView: {
      const auto index = directory.layout->child(directory.index, name);
      if (!index) return std::nullopt;
      Place place = directory;
      place.index = *index;
      return place;
    }
  }
  return std::nullopt;
}

std::optional<Place> Places::child_of_namespace(const Place& directory, const std::string& name) {
  const auto numbered = [&](Kind kind, const std::string& path) {
    Place place;
    place.tree = {kind, path, {}};
    place.number = trees_.number_of(place.tree);
    return place;
  };
  if (directory.tree.path.empty() && name == kSnapshotsName) {
    return numbered(Kind::kSnapshots, kSnapshotsName);
  }
  const std::string path = join(directory.tree.path, name);
  if (const auto model = catalog_.find(path)) {
    const auto snapshot = catalog_.snapshot(model->current);
    if (snapshot) return view(path, snapshot);
  }
  if (const std::size_t at = path.rfind('@'); at != std::string::npos) {
    const auto snapshot = catalog_.revision(path.substr(0, at), path.substr(at + 1));
    if (snapshot) return view(path, snapshot);
  }
  if (catalog_.is_namespace(path)) return numbered(Kind::kNamespace, path);
  return std::nullopt;
}

void Places::list(const Place& directory, std::uint64_t position, const Visit& visit) {
  if (directory.is_view()) {
    // The kernel comes back for every few kilobytes: straight to where it was.
    const std::vector<std::uint32_t>& children = directory.node().children;
    for (; position < children.size(); ++position) {
      Place child = directory;
      child.index = children[position];
      if (!visit(child.node().name, child, position)) return;
    }
    return;
  }
  const std::vector<std::string> all = names(directory);
  for (; position < all.size(); ++position) {
    const auto found = child(directory, all[position]);
    if (!found) continue;  // removed since the names were read
    if (!visit(all[position], *found, position)) return;
  }
}

// Of a directory that is no view.
std::vector<std::string> Places::names(const Place& directory) const {
  std::vector<std::string> names;
  if (directory.tree.kind == Kind::kNamespace) {
    for (const catalog::Child& child : catalog_.children(directory.tree.path)) {
      names.push_back(child.component);
    }
    return names;
  }
  for (const auto& snapshot : catalog_.snapshots()) {
    if (snapshot->id()) names.push_back(snapshot->id()->hex());
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::optional<Place> Places::walk(std::string_view path) {
  Place place = at(kRootNode);
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (end > 0) {
      auto next = child(place, std::string(path.substr(0, end)));
      if (!next) return std::nullopt;
      place = *std::move(next);
    }
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return place;
}

Place Places::view(const std::string& path, const snapshot::SnapshotPtr& snapshot) {
  Place place;
  place.tree = {Kind::kView, path, snapshot->key()};
  place.number = trees_.number_of(place.tree);
  place.snapshot = snapshot;
  place.layout = layout_of(*snapshot);
  return place;
}

SnapshotTreePtr Places::layout_of(const snapshot::Snapshot& snapshot) {
  const auto known = layouts_.with([&](auto& layouts) -> SnapshotTreePtr {
    const auto found = layouts.find(snapshot.key());
    return found == layouts.end() ? nullptr : found->second;
  });
  if (known) return known;
  auto made = std::make_shared<const SnapshotTree>(snapshot);
  forget_old_layouts();
  return layouts_.with(
      [&](auto& layouts) { return layouts.try_emplace(snapshot.key(), made).first->second; });
}

void Places::forget_old_layouts() {
  auto layouts = layouts_.with([](const auto& all) { return all; });
  std::erase_if(layouts,
                [&](const auto& entry) { return catalog_.snapshot(entry.first) != nullptr; });
  layouts_.with([&](auto& all) {
    for (const auto& [key, gone] : layouts) all.erase(key);
  });
}

}  // namespace weightfs::vfs
