// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/synchronized.hpp"
#include "digest/digest.hpp"
#include "store/blob.hpp"
#include "store/identity.hpp"
#include "store/name_locks.hpp"
#include "store/partial_blob.hpp"
#include "store/partial_use.hpp"
#include "store/quarantine.hpp"
#include "store/store_usage.hpp"
#include "store/volume.hpp"
#include "store/volume_slot.hpp"
#include "store/volume_status.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace weightfs::store {

struct StoreOptions {
  std::vector<std::filesystem::path> directories;  ///< absolute; one for each disk
  bool allow_network_store = false;                ///< as VolumeOptions
  std::string boot_id;                             ///< as VolumeOptions
  QuarantineLimits quarantine;                     ///< of each
};

/// What becomes of a directory that cannot be opened because its disk fails.
enum class Unopenable {
  kRefuse,    ///< an error, unless another one could be opened
  kTryLater,  ///< probe() opens it once its disk is back
};

/// The content-addressed store: the volumes of any number of directories, as one. None at all is
/// legal, too: then everything is a miss, and nothing can be written. Volumes can be opened at any
/// time, and stay until the end.
///
/// A volume whose disk fails a write is set aside: nothing new goes there, and its blobs are served
/// as long as they can be read. A slow disk is a good one. A blob is where it was filled. The same
/// one can be in two volumes, after one of them was out of
/// reach; then the first that has it counts, and remove() removes both. Thread-safe; no lock is
/// held while a volume works, but for open_volumes(), of which there is one at a time.
class Store {
 public:
  /// Without a volume. `clock` must outlive it.
  Store(const Clock& clock, Log log);
  /// With those of `options`; Error as open_volumes() with kRefuse.
  [[nodiscard]] static std::unique_ptr<Store> open(const StoreOptions& options, const Clock& clock,
                                                   Log log);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store();

  /// Opens or creates a volume in each directory that has none yet, all of them or, after an Error,
  /// none more than before. Error as of Volume::open, where a person has to look at it: another
  /// daemon has it, it is not a store, or it may not be written. A disk that fails (kIo, kNoSpace;
  /// with kTryLater also kPermission) is dealt with as `unopenable` says.
  void open_volumes(const StoreOptions& options, Unopenable unopenable = Unopenable::kRefuse);

  /// Looks after the volumes that cannot be used: opens those that could not be opened, and tries
  /// whether those that were set aside can be written again. Each is tried after a few seconds, and
  /// less and less often up to once a minute. To be called every second or so, by one thread, which
  /// may have to wait for a disk. True if one can be used again: what is in the store has to be
  /// counted anew.
  bool probe();

  /// In the order of the directories. Asks the disks for their space.
  [[nodiscard]] std::vector<VolumeStatus> volumes() const;
  /// Of all of them together; a filesystem that several are on counts once.
  [[nodiscard]] StoreUsage usage() const;
  /// Whether there is any volume, be it set aside. In memory.
  [[nodiscard]] bool readable() const { return !opened().empty(); }
  /// Whether anything can be written. In memory.
  [[nodiscard]] bool writable() const;
  /// Why not all of it can be used, for a person; empty if it can. In memory.
  [[nodiscard]] std::string trouble() const;

  /// As Volume has them, of the volume that has the blob.
  [[nodiscard]] std::optional<Blob> find(const Digest& digest);
  [[nodiscard]] bool contains(const Digest& digest) const;
  [[nodiscard]] bool contains(const Digest& digest, std::uint64_t size) const;
  [[nodiscard]] bool in_use(const Digest& digest) const;
  void touch(const Digest& digest);
  [[nodiscard]] bool verified_this_boot(const Digest& digest) const;
  void mark_verified(const Digest& digest);
  [[nodiscard]] std::optional<std::vector<Midstate>> midstates(const Digest& digest) const;

  /// Resumes the partial blob of this key where there is one on a usable volume, else creates it on
  /// the one that has the most room; on the next one if that fails or is full. Error as of
  /// Volume::partial, kNoSpace if any is full; kIo where no volume can be written to.
  [[nodiscard]] std::unique_ptr<PartialBlob> partial(const PartialKey& key, std::uint64_t size);
  /// As Volume::adopt, on the usable volume of the file's filesystem; kUnsupported if there is
  /// none.
  [[nodiscard]] Blob adopt(const Digest& digest, const Adoption& adoption);
  [[nodiscard]] PartialUse partial_use(const PartialKey& key) const;
  [[nodiscard]] std::uint64_t partial_bytes(const PartialKey& key) const;
  /// Error(kBusy) while somebody fills it; nothing happens if there is none.
  void discard_partial(const PartialKey& key);
  /// Throws away the partial blobs that nobody asks for any more: all that nobody fills but those
  /// named.
  void discard_partials_but(const std::unordered_set<PartialKey>& kept);

  /// Whether only volumes that are set aside have the blob: remove() would do nothing.
  [[nodiscard]] bool set_aside(const Digest& digest) const;
  /// Unlinks a blob wherever it can be done; whoever has it open keeps it. Returns the bytes given
  /// back, 0 if there was none. What is on a volume that is set aside stays.
  std::uint64_t remove(const Digest& digest);
  void quarantine(const Digest& digest, const std::string& reason,
                  const std::optional<Identity>& identity = std::nullopt);
  VerifyOutcome verify(const Digest& digest, const std::function<void(std::uint64_t)>& progress);
  /// Each once.
  [[nodiscard]] std::vector<Digest> list() const;

 private:
  using Slots = std::vector<std::shared_ptr<VolumeSlot>>;

  [[nodiscard]] std::shared_ptr<const Slots> slots() const;
  [[nodiscard]] std::vector<Volume*> opened() const;
  [[nodiscard]] std::unique_ptr<PartialBlob> place(const PartialKey& key, std::uint64_t size);
  void tidy(Volume& volume);
  /// Error only if it is not that the volume has to be set aside.
  template <class Change>
  void each_usable(const Change& change);
  [[nodiscard]] Volume* with_blob(const Digest& digest) const;

  const Clock& clock_;
  const Log log_;
  std::mutex opening_;  ///< held while volumes are opened; before any other lock
  /// Replaced by longer ones.
  Synchronized<std::shared_ptr<const Slots>> slots_;
  NameLocks placing_;  ///< a key is given to one volume
};

}  // namespace weightfs::store
