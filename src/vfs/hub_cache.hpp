// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "catalog/catalog.hpp"
#include "snapshot/snapshot.hpp"
#include "vfs/hub_files.hpp"
#include "vfs/per_snapshot.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace weightfs::vfs {

class HubFolders;

/// The directory that the Hub's own libraries take for their cache (HF_HUB_CACHE), of every model
/// in the catalog whose source is a Hub:
///
///     version.txt  CACHEDIR.TAG  .locks/models--org--name/
///     models--org--name/refs/main                    the commit, without a newline
///                       blobs/<etag>
///                       snapshots/<commit>/a/b.txt   -> ../../../blobs/<etag>
///                       trees/<commit>.json
///                       .no_exist/<commit>/a.json    empty
///
/// Says what stands where, and nothing of node ids or of what is on disk. Empty directories for
/// locks are there because clients make them, and go on where they exist.
///
/// Thread-safe. The catalog must outlive it.
class HubCache {
 public:
  /// Everything by its path below this directory, "" being itself.
  struct Directory {
    std::string path;
  };
  /// A file whose bytes stand nowhere else. The same text is the same file, wherever it is.
  struct Text {
    std::string which;               ///< see text()
    snapshot::SnapshotPtr snapshot;  ///< null where the text is of none
  };
  /// snapshots/<commit>: the tree of the snapshot with a link for each file.
  struct Links {
    std::string path;
    snapshot::SnapshotPtr snapshot;
  };
  /// A file of a model, which has a place of its own in the mount.
  struct Blob {
    std::string view;  ///< a name, or name@revision
    snapshot::SnapshotPtr snapshot;
    std::uint32_t file = 0;
  };
  using Entry = std::variant<Directory, Text, Links, Blob>;

  explicit HubCache(const catalog::Catalog& catalog);
  ~HubCache();

  /// nullopt: there is no such entry, or no such directory.
  [[nodiscard]] std::optional<Entry> find(const std::string& directory, const std::string& name);
  /// The entries from `position` on, by name, until `visit` returns false.
  using Visit = std::function<bool(const std::string& name, Entry entry, std::uint64_t position)>;
  void list(const std::string& directory, std::uint64_t position, const Visit& visit);
  /// What a link leads to.
  [[nodiscard]] std::optional<Blob> target(const Links& links, std::uint32_t file);

  /// Error(kChanged) for a text that there is none of.
  [[nodiscard]] std::string text(const Text& text);
  [[nodiscard]] std::uint64_t size(const Text& text);
  [[nodiscard]] std::string link(const snapshot::Snapshot& snapshot, std::uint32_t file);

 private:
  using FoldersPtr = std::shared_ptr<const HubFolders>;
  struct Known {
    std::uint64_t changes = 0;
    FoldersPtr folders;
  };

  FoldersPtr folders();

  const catalog::Catalog& catalog_;
  PerSnapshot<HubFiles> files_;
  Synchronized<Known> known_;
};

}  // namespace weightfs::vfs
