// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/error.hpp"
#include "base/process_lock.hpp"
#include "base/synchronized.hpp"
#include "store/adoption.hpp"
#include "store/blob_files.hpp"
#include "store/index.hpp"
#include "store/layout.hpp"
#include "store/name_locks.hpp"
#include "store/open_blobs.hpp"
#include "store/partial_table.hpp"
#include "store/quarantine.hpp"
#include "store/touch_batch.hpp"
#include "store/volume.hpp"
#include "store/volume_health.hpp"

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

namespace weightfs::store {

/// What a Volume consists of, and the operations that need several of its pieces at once.
/// Constructing it is opening the store.
///
/// Lock order: a turn of `names_`, then the locks within the pieces, none of which calls another
/// piece. File before row when something goes, row before file when something comes (see Index).
class Volume::State {
 public:
  State(const VolumeOptions& options, const Clock& clock, Log log);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  [[nodiscard]] const Layout& layout() const noexcept { return layout_; }
  [[nodiscard]] std::uint64_t filesystem() const noexcept { return filesystem_; }
  [[nodiscard]] const std::string& boot_id() const noexcept { return boot_id_; }
  [[nodiscard]] std::int64_t boot() const noexcept { return boot_; }
  [[nodiscard]] const Log& log() const noexcept { return log_; }
  [[nodiscard]] PartialTable& partials() noexcept { return partials_; }
  [[nodiscard]] Quarantine& quarantine() noexcept { return quarantine_; }
  [[nodiscard]] const Index& index() const noexcept { return *index_; }
  [[nodiscard]] StoreUsage usage() const;
  [[nodiscard]] VolumeHealth& health() noexcept { return health_; }
  [[nodiscard]] const VolumeHealth& health() const noexcept { return health_; }
  /// As Volume.
  [[nodiscard]] bool was_replaced() const;
  void probe();
  [[nodiscard]] bool in_use(const Digest& digest) const { return open_blobs_.held(digest); }

  /// The row, or nothing where the index fails: then the store is all misses, and says so once.
  [[nodiscard]] std::optional<IndexRow> row(const Digest& digest) const;

  /// Whether its bytes were compared with its name in this boot.
  [[nodiscard]] bool verified_this_boot(const Digest& digest) const;

  enum class Presence { kIntact, kMissing, kDiffers };
  struct Lookup {
    Presence presence = Presence::kMissing;
    std::optional<Blob> blob;  ///< if kIntact
  };
  /// Opens and compares; drops from the store what is not as it should be.
  [[nodiscard]] Lookup find(const Digest& digest);

  /// A filled, synced file on its way into blobs/.
  struct Staged {
    std::filesystem::path data;
    std::filesystem::path parts;  ///< empty: none
    Identity identity;
  };
  /// Publishes, or finds that the blob is there already, verified in this boot, and leaves the
  /// staged files where they are.
  [[nodiscard]] Blob publish(const Digest& digest, const Staged& staged);

  /// As Volume (adoption.cpp).
  [[nodiscard]] Blob adopt(const Digest& digest, const Adoption& adoption);

  std::uint64_t remove(const Digest& digest);
  /// Only if the blob still is the one of `identity`, where that is given.
  void quarantine_blob(const Digest& digest, const std::optional<Identity>& identity,
                       const std::string& reason);

  void mark_verified(const Digest& digest);
  void touch(const Digest& digest);
  /// Puts midstates that were computed anew beside a blob. Best effort.
  void renew_parts(const Blob& blob, const std::vector<Midstate>& midstates);

 private:
  void open_index();
  void rebuild_index();
  void settle(const IndexRow& unpublished);
  void find_partials();

  [[nodiscard]] Lookup open_row(const IndexRow& row) const;
  /// With the turn of this name.
  [[nodiscard]] Lookup heal(const Digest& digest);
  void take_to_quarantine(const Digest& digest, const std::string& reason);
  /// The same for what must not be served in any case: where the file cannot be moved, its row goes
  /// all the same.
  void drop(const Digest& digest, const std::string& reason);
  /// Lets `file` remove what stands under the name, between the two changes of its row.
  void take_away(const Digest& digest, const std::function<void()>& file);
  void forget(const Digest& digest);
  /// Whether the directory is the one that was opened; until it is again, all blobs are missing.
  bool check_root() const;
  void index_failed(const Error& error) const;
  [[nodiscard]] std::int64_t wall_seconds() const;

  const Layout layout_;
  const std::string boot_id_;
  const std::int64_t boot_;  ///< as the index keeps it; 0 where the boot is not known
  const Clock& clock_;
  const Log log_;
  const ProcessLock lock_;
  const std::uint64_t filesystem_;
  const std::string root_;  ///< tells this directory from any other that may stand there later
  mutable std::atomic<bool> root_gone_ = false;
  mutable VolumeHealth health_;
  BlobFiles files_;
  std::unique_ptr<Index> index_;
  Quarantine quarantine_;
  // Each of these provides its own synchronisation.
  PartialTable partials_;
  mutable OpenBlobs open_blobs_;
  NameLocks names_;
  TouchBatch touches_;
  mutable std::atomic<bool> index_failure_told_ = false;
  /// Blobs that are gone although their rows could not be deleted: a disk that has failed takes no
  /// more changes.
  Synchronized<std::unordered_set<Digest>> gone_;
};

}  // namespace weightfs::store
