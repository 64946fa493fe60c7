// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "base/log.hpp"
#include "catalog/leases.hpp"
#include "catalog/model.hpp"
#include "snapshot/snapshot.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weightfs::catalog {

class CatalogState;

/// Names, revisions and snapshots, durable in the state directory: `catalog.json` and
/// `snapshots/<key>.json` (FORMAT.md); with the leases of `leases.json`. Every change but learn()
/// is on disk before the call returns; a failed write changes nothing. Thread-safe. One Catalog per
/// directory on the whole machine (flock on `lock`; Error(kBusy) otherwise).
class Catalog {
 public:
  /// Reads what is there. Error(kUnsupported) for a version of the format that is not ours,
  /// kCorrupt for damaged names. The damaged listing of a snapshot is set aside (`*.damaged`), and
  /// takes away no other name than those that showed it.
  Catalog(std::filesystem::path state_directory, const Clock& clock, Log log);
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;
  ~Catalog();

  /// A new name. Error kInvalid (name; or it is a prefix of another name or the other way round),
  /// kBusy (exists with another source).
  void add(const std::string& name, const std::string& source,
           const snapshot::SnapshotPtr& snapshot);
  /// Error(kNotFound). Snapshots that no name has any more are forgotten.
  void remove(const std::string& name);
  /// Makes `snapshot` a known revision of the name without showing it: its digests can be learned
  /// while it is fetched. Of one that is known, what it is called now.
  void stage(const std::string& name, const snapshot::SnapshotPtr& snapshot);
  /// Makes `snapshot` the current revision of the name, in one step.
  void flip(const std::string& name, const snapshot::SnapshotPtr& snapshot);
  /// Makes what the name shows the revision that it is rolled back to.
  void confirm(const std::string& name);
  /// As confirm, of every name that has shown what it shows since `then` (seconds since 1970) or
  /// for longer. Returns the names for which that is news.
  std::vector<std::string> confirm_since(std::int64_t then);
  /// Shows the last confirmed revision again, in one step. Error(kNotReady) where the name shows
  /// it, or nothing was ever shown before what it shows.
  void rollback(const std::string& name);
  void set_declared(const std::string& name, bool declared);
  /// Where its next update looks. Error(kNotFound).
  void set_source(const std::string& name, const std::string& source);
  /// Takes revisions from a name, but for the one that it shows and the one that it is rolled back
  /// to. Snapshots that no name has any more are forgotten.
  void forget(const std::string& name, const std::vector<Digest>& revisions);
  /// Knows `snapshot` while nobody can say yet whether a name will have it, so that its digests are
  /// learned while it is fetched; until as many calls of dismiss(), over no restart. `name` is the
  /// one that it is for, as far as name_of() is asked.
  void consider(const snapshot::SnapshotPtr& snapshot, const std::string& name = {});
  void dismiss(const Digest& snapshot_key);
  void pin(const std::string& name, const Pin& pin);
  void unpin(const std::string& name);
  /// Records a digest that the listing did not have, in every snapshot that holds a file of this
  /// source, path and validator. Where it cannot be written it is known until the next start, and
  /// learned again.
  void learn(const Digest& snapshot_key, std::size_t file_index, const Digest& sha256);

  /// As it is now: a pin that is over is not in it.
  [[nodiscard]] std::optional<Model> find(const std::string& name) const;
  [[nodiscard]] std::vector<Model> list() const;  ///< likewise; sorted by name
  /// Names that are not shown, because the listing of what they showed was damaged on disk: their
  /// sources have it. They stay known until they are added again, which gives them their pins back,
  /// or removed.
  [[nodiscard]] std::vector<Model> lost() const;

  [[nodiscard]] snapshot::SnapshotPtr snapshot(const Digest& key) const;  ///< null where unknown
  [[nodiscard]] snapshot::SnapshotPtr snapshot_by_id(const Digest& id) const;
  /// A known revision of the name: the source's own word for it, an id, a key, or an unambiguous
  /// prefix of one of them with at least 8 characters. Null where there is none. Of several with
  /// the same id, any.
  [[nodiscard]] snapshot::SnapshotPtr revision(const std::string& name,
                                               std::string_view text) const;
  /// A name that shows the snapshot, else one that has it as another revision, else one that it is
  /// considered for, else nothing. Cheap.
  [[nodiscard]] std::string name_of(const Digest& snapshot_key) const;
  /// Whether a pinned name shows this snapshot now.
  [[nodiscard]] bool pinned(const Digest& snapshot_key) const;
  /// Whether a name that flipped at `then` or later (seconds since 1970) would be rolled back to
  /// this snapshot.
  [[nodiscard]] bool rolled_back_to(const Digest& snapshot_key, std::int64_t then) const;
  /// What a directory of the mount shows: the next components of all names below `path` ("" is the
  /// root), sorted, each once.
  [[nodiscard]] std::vector<Child> children(std::string_view path) const;
  /// Whether some name continues below `path`.
  [[nodiscard]] bool is_namespace(std::string_view path) const;
  /// Whether the last name that had this snapshot was removed, since the start, and no name has had
  /// it again. (One that is about to be added is not known, and was not forgotten.)
  [[nodiscard]] bool forgotten(const Digest& snapshot_key) const;
  /// Every snapshot known, whatever name has it.
  [[nodiscard]] std::vector<snapshot::SnapshotPtr> snapshots() const;
  /// Another one whenever snapshots() has others, or one of them has got its last digest.
  [[nodiscard]] std::uint64_t generation() const noexcept;

  /// Another one whenever names have come, gone, or changed.
  [[nodiscard]] std::uint64_t changes() const noexcept;

  /// Of the same directory, and under the same lock. As long as this.
  [[nodiscard]] Leases& leases() noexcept { return *leases_; }
  [[nodiscard]] const Leases& leases() const noexcept { return *leases_; }

 private:
  std::unique_ptr<CatalogState> state_;
  std::unique_ptr<Leases> leases_;
};

}  // namespace weightfs::catalog
