// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "vfs/places.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace weightfs::vfs {

namespace {

using TreeKind = TreeTable::Kind;

constexpr const char* kSnapshotsName = ".snapshots";
constexpr const char* kHubName = ".hub";

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

Kind Place::kind() const {
  if (tree.kind == TreeKind::kText) return Kind::kFile;
  if (!is_revision() || !node().file) return Kind::kDirectory;
  return is_view() ? Kind::kFile : Kind::kLink;
}

const snapshot::File* Place::file() const {
  if (!is_view() || !node().file) return nullptr;
  return &snapshot->files()[*node().file];
}

std::uint64_t Place::inode() const {
  switch (tree.kind) {
    case TreeKind::kNamespace:
      return tree.path.empty() ? 1 : inode_of("namespace " + tree.path);
    case TreeKind::kSnapshots:
      return inode_of("snapshots");
    case TreeKind::kView:
      return inode_of("file " + tree.key.hex() + " " + layout->path(index));
    case TreeKind::kHub:
      return inode_of("hub " + tree.path);
    case TreeKind::kLinks:
      return inode_of("link " + tree.key.hex() + " " + layout->path(index));
    case TreeKind::kText:
      return inode_of("text " + tree.key.hex() + " " + tree.path);
  }
  return 0;
}

Places::Places(const catalog::Catalog& catalog, SessionLog& log)
    : catalog_(catalog), trees_(log), layouts_(catalog), hub_(catalog) {
}

Place Places::at(NodeId node) {
  const auto tree = trees_.find(node.tree());
  if (!tree) throw Error(Errc::kChanged, "a node id of another session");
  Place place;
  place.tree = *tree;
  place.number = node.tree();
  place.index = node.index();
  if (tree->key == Digest()) return place;
  place.snapshot = catalog_.snapshot(tree->key);
  if (!place.snapshot) throw Error(Errc::kChanged, tree->path + " is no longer in the catalog");
  if (tree->kind == TreeKind::kText) return place;
  place.layout = layouts_.of(*place.snapshot);
  if (place.layout->node(place.index) == nullptr) {
    throw Error(Errc::kChanged, "a node id outside of " + tree->path);
  }
  return place;
}

std::optional<Place> Places::child(const Place& directory, const std::string& name) {
  switch (directory.tree.kind) {
    case TreeKind::kNamespace:
      return child_of_namespace(directory, name);
    case TreeKind::kSnapshots: {
      const auto id = Digest::parse(name);
      const auto snapshot = id && id->hex() == name ? catalog_.snapshot_by_id(*id) : nullptr;
      if (!snapshot) return std::nullopt;
      return view(join(kSnapshotsName, name), snapshot);
    }
    case TreeKind::kHub: {
      const auto entry = hub_.find(directory.tree.path, name);
      return entry ? std::optional(place_of(*entry)) : std::nullopt;
    }
    case TreeKind::kText:
      return std::nullopt;
    case TreeKind::kView:
    case TreeKind::kLinks: {
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
  if (directory.tree.path.empty() && name == kSnapshotsName) {
    return numbered({TreeKind::kSnapshots, kSnapshotsName, {}});
  }
  if (directory.tree.path.empty() && name == kHubName) return numbered({TreeKind::kHub, "", {}});
  const std::string path = join(directory.tree.path, name);
  if (const auto model = catalog_.find(path)) {
    const auto snapshot = catalog_.snapshot(model->current);
    if (snapshot) return view(path, snapshot);
  }
  if (const std::size_t at = path.rfind('@'); at != std::string::npos) {
    const auto snapshot = catalog_.revision(path.substr(0, at), path.substr(at + 1));
    if (snapshot) return view(path, snapshot);
  }
  if (catalog_.is_namespace(path)) return numbered({TreeKind::kNamespace, path, {}});
  return std::nullopt;
}

void Places::list(const Place& directory, std::uint64_t position, const Visit& visit) {
  if (directory.is_revision()) {
    // The kernel comes back for every few kilobytes: straight to where it was.
    const std::vector<std::uint32_t>& children = directory.node().children;
    for (; position < children.size(); ++position) {
      Place child = directory;
      child.index = children[position];
      if (!visit(child.node().name, child, position)) return;
    }
    return;
  }
  if (directory.tree.kind == TreeKind::kHub) {
    hub_.list(directory.tree.path, position,
              [&](const std::string& name, const HubCache::Entry& entry, std::uint64_t at) {
                return visit(name, place_of(entry), at);
              });
    return;
  }
  const std::vector<std::string> all = names(directory);
  for (; position < all.size(); ++position) {
    const auto found = child(directory, all[position]);
    if (!found) continue;  // removed since the names were read
    if (!visit(all[position], *found, position)) return;
  }
}

// Of a directory of names or snapshots.
std::vector<std::string> Places::names(const Place& directory) const {
  std::vector<std::string> names;
  if (directory.tree.kind == TreeKind::kNamespace) {
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
      if (next && next->kind() == Kind::kLink) next = target(*next);
      if (!next) return std::nullopt;
      place = *std::move(next);
    }
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return place;
}

Place Places::numbered(TreeTable::Tree tree) {
  Place place;
  place.tree = std::move(tree);
  place.number = trees_.number_of(place.tree);
  return place;
}

Place Places::view(const std::string& path, const snapshot::SnapshotPtr& snapshot) {
  Place place = numbered({TreeKind::kView, path, snapshot->key()});
  place.snapshot = snapshot;
  place.layout = layouts_.of(*snapshot);
  return place;
}

Place Places::place_of(const HubCache::Entry& entry) {
  if (const auto* directory = std::get_if<HubCache::Directory>(&entry)) {
    return numbered({TreeKind::kHub, directory->path, {}});
  }
  if (const auto* text = std::get_if<HubCache::Text>(&entry)) {
    Place place =
        numbered({TreeKind::kText, text->which, text->snapshot ? text->snapshot->key() : Digest()});
    place.snapshot = text->snapshot;
    return place;
  }
  if (const auto* links = std::get_if<HubCache::Links>(&entry)) {
    Place place = numbered({TreeKind::kLinks, links->path, links->snapshot->key()});
    place.snapshot = links->snapshot;
    place.layout = layouts_.of(*links->snapshot);
    return place;
  }
  const auto& blob = std::get<HubCache::Blob>(entry);
  Place place = view(blob.view, blob.snapshot);
  place.index = place.layout->index_of(blob.file);
  return place;
}

std::optional<Place> Places::target(const Place& link) {
  const auto blob = hub_.target({link.tree.path, link.snapshot}, *link.node().file);
  return blob ? std::optional(place_of(*blob)) : std::nullopt;
}

}  // namespace weightfs::vfs
