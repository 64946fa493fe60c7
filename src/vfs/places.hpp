// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "catalog/catalog.hpp"
#include "snapshot/snapshot.hpp"
#include "vfs/attributes.hpp"
#include "vfs/hub_cache.hpp"
#include "vfs/node_id.hpp"
#include "vfs/per_snapshot.hpp"
#include "vfs/snapshot_tree.hpp"
#include "vfs/tree_table.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weightfs::vfs {

/// What a node id stands for. A value that keeps its snapshot alive.
struct Place {
  TreeTable::Tree tree;
  std::uint32_t number = 0;        ///< of the tree
  std::uint32_t index = 0;         ///< within it
  snapshot::SnapshotPtr snapshot;  ///< null where the tree is not of one
  SnapshotTreePtr layout;          ///< null where it has not the shape of one

  /// Of a snapshot's files themselves, and not of links to them.
  [[nodiscard]] bool is_view() const noexcept { return tree.kind == TreeTable::Kind::kView; }
  /// Of its shape: what is below such a directory never changes.
  [[nodiscard]] bool is_revision() const noexcept { return layout != nullptr; }
  [[nodiscard]] const SnapshotTree::Node& node() const { return *layout->node(index); }
  [[nodiscard]] Kind kind() const;
  /// The snapshot's; nullptr for everything else, also for links and generated files.
  [[nodiscard]] const snapshot::File* file() const;
  /// Of a file that is generated.
  [[nodiscard]] HubCache::Text text() const { return {tree.path, snapshot}; }
  /// st_ino: the same for one path of one snapshot whichever way it is reached.
  [[nodiscard]] std::uint64_t inode() const;
};

using PlacePtr = std::shared_ptr<const Place>;

/// Finds places: by node id, and by name within a place. Knows the shape of the mount
/// (names, `name@revision`, `.snapshots/<id>`, `.hub`), and nothing of what is cached.
///
/// Thread-safe. The catalog and the SessionLog must outlive it.
class Places {
 public:
  Places(const catalog::Catalog& catalog, SessionLog& log);

  /// Error(kChanged) for a node whose snapshot is no longer in the catalog.
  [[nodiscard]] Place at(NodeId node);
  /// nullopt: no such entry.
  [[nodiscard]] std::optional<Place> child(const Place& directory, const std::string& name);
  /// The entries of a directory from `position` on (0 is the first), by name, until `visit` returns
  /// false. Revisions by '@', `.snapshots` and `.hub` can be looked up but are not listed: whoever
  /// walks the mount meets each model once.
  using Visit =
      std::function<bool(const std::string& name, const Place& place, std::uint64_t position)>;
  void list(const Place& directory, std::uint64_t position, const Visit& visit);
  /// Walks a path from the root of the mount, "" being the root. Goes on where a link leads.
  [[nodiscard]] std::optional<Place> walk(std::string_view path);

  /// Of generated files and links.
  [[nodiscard]] HubCache& hub() noexcept { return hub_; }

 private:
  Place numbered(TreeTable::Tree tree);
  Place view(const std::string& path, const snapshot::SnapshotPtr& snapshot);
  std::optional<Place> child_of_namespace(const Place& directory, const std::string& name);
  Place place_of(const HubCache::Entry& entry);
  std::optional<Place> target(const Place& link);
  [[nodiscard]] std::vector<std::string> names(const Place& directory) const;

  const catalog::Catalog& catalog_;
  TreeTable trees_;
  PerSnapshot<SnapshotTree> layouts_;
  HubCache hub_;
};

}  // namespace weightfs::vfs
