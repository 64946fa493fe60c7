// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "catalog/catalog.hpp"
#include "snapshot/snapshot.hpp"
#include "vfs/hub_files.hpp"
#include "vfs/per_snapshot.hpp"

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weightfs::vfs {

/// One commit of a repository. A value.
struct HubRevision {
  std::string commit;
  snapshot::SnapshotPtr snapshot;  ///< may have its name from another commit of the same files
  std::shared_ptr<const HubFiles> files;
  std::string view;  ///< where the mount shows it: a name, or name@commit
};

/// One repository of a Hub: all that the catalog knows of it. Immutable once it is complete;
/// thread-safe then.
class HubFolder {
 public:
  struct Blob {
    const HubRevision* revision = nullptr;
    std::uint32_t file = 0;
    [[nodiscard]] const std::string& etag() const { return revision->files->etag(file); }
  };

  /// Of several with the same commit or reference, the first one counts.
  void add(HubRevision revision);
  void add_ref(const std::string& name, const std::string& commit) {
    refs_.try_emplace(name, commit);
  }

  /// Once one was added.
  [[nodiscard]] const HubRevision& first() const { return revisions_.front(); }
  [[nodiscard]] const HubRevision* revision(std::string_view commit) const;
  [[nodiscard]] std::vector<std::string> commits() const;
  /// Commits by name: "main", "refs/pr/1".
  [[nodiscard]] const std::map<std::string, std::string>& refs() const { return refs_; }
  /// A content that several revisions have is the file of the one that was added first.
  [[nodiscard]] std::optional<Blob> blob(std::string_view etag) const;
  /// One for each content, sorted by etag.
  [[nodiscard]] const std::vector<Blob>& blobs() const;

 private:
  std::list<HubRevision> revisions_;  ///< in the order in which they were added
  std::map<std::string_view, const HubRevision*> by_commit_;
  std::map<std::string, std::string> refs_;
  mutable std::once_flag listed_;
  mutable std::vector<Blob> blobs_;
};

/// The repositories of Hubs that the catalog has names for, as of one moment. What several names
/// have of the same repository is one folder; where they differ, the one that was updated last
/// counts. Where no name has the branch main, it is shown as main as well: that is what loaders ask
/// for. Immutable, so thread-safe.
class HubFolders {
 public:
  HubFolders(const catalog::Catalog& catalog, PerSnapshot<HubFiles>& files);

  /// By name, as in HubReference::cache_folder().
  [[nodiscard]] const std::map<std::string, HubFolder, std::less<>>& all() const { return all_; }
  /// nullptr where there is none.
  [[nodiscard]] const HubFolder* find(std::string_view name) const;

 private:
  std::map<std::string, HubFolder, std::less<>> all_;
};

}  // namespace weightfs::vfs
