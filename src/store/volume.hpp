// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "base/log.hpp"
#include "digest/digest.hpp"
#include "store/adoption.hpp"
#include "store/blob.hpp"
#include "store/identity.hpp"
#include "store/partial_blob.hpp"
#include "store/partial_use.hpp"
#include "store/quarantine.hpp"
#include "store/store_usage.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace weightfs::store {

struct VolumeOptions {
  std::filesystem::path directory;
  /// Let it live on NFS, Lustre and their like. It defeats the purpose.
  bool allow_network_store = false;
  /// /proc/sys/kernel/random/boot_id: decides which blocks of a partial blob are believed, and
  /// which blobs count as verified. Empty equals no boot: nothing is believed that was not flushed.
  std::string boot_id;
  QuarantineLimits quarantine;
};

/// What verify() found.
enum class VerifyOutcome { kIntact, kCorrupt, kMissing };

/// One directory of the store, on one local filesystem (FORMAT.md): verified blobs by sha256,
/// partial blobs, quarantine, and an index in SQLite that can always be rebuilt from the files.
/// Expendable: it is never the only copy of anything. Store is what the layers above see.
///
/// A blob exists if and only if its file stands under blobs/. Thread-safe. One Volume per directory
/// on the whole machine (flock on `lock`).
class Volume {
 public:
  /// Opens or creates. Refuses, with Error: kBusy another daemon has it; kUnsupported an unknown
  /// VERSION or a network filesystem; kInvalid a directory that holds anything that is not ours;
  /// kPermission, kNoSpace, kIo for what the disk says (read-only included). A full disk is no
  /// reason to refuse a store that exists. Removes `.tmp` leftovers and partial blobs without a
  /// usable map and, where the index is missing, damaged or of another directory, rebuilds it from
  /// the files, which then count as unverified. Warns on tmpfs (memory) and overlayfs (no
  /// passthrough). `clock` must outlive it.
  [[nodiscard]] static std::unique_ptr<Volume> open(const VolumeOptions& options,
                                                    const Clock& clock, Log log);
  Volume(const Volume&) = delete;
  Volume& operator=(const Volume&) = delete;
  ~Volume();

  /// The blob, opened, after its identity (size, mtime, inode) was compared with the index. One
  /// that is missing, unreadable or differs is dropped from the store (quarantined, if there is
  /// something to keep) and is a miss. An index that fails makes everything a miss. Error kIo where
  /// the file cannot be opened for a reason that is not its own (too many open files).
  [[nodiscard]] std::optional<Blob> find(const Digest& digest);
  /// As find, without opening: for attributes. Asks the index only, which is in the page cache.
  [[nodiscard]] bool contains(const Digest& digest) const;
  /// Whether it has the blob, and with this size: listings can be wrong.
  [[nodiscard]] bool contains(const Digest& digest, std::uint64_t size) const;
  /// Whether somebody has the blob open: a reader, a fill that has just completed, verify(). In
  /// memory.
  [[nodiscard]] bool in_use(const Digest& digest) const;
  /// Notes that the blob was used just now, for eviction. Cheap: notes are kept in memory and
  /// written many at a time; the last ones may be lost.
  void touch(const Digest& digest);

  /// Whether the blob's bytes were compared with its name in this boot, by commit(), verify() or
  /// whoever called mark_verified().
  [[nodiscard]] bool verified_this_boot(const Digest& digest) const;
  /// Best effort: where it cannot be written down, the blob is checked again.
  void mark_verified(const Digest& digest);
  /// What check_part() needs; nullopt where `.parts` is missing, damaged or unreadable (verify()
  /// writes it anew).
  [[nodiscard]] std::optional<std::vector<Midstate>> midstates(const Digest& digest) const;

  /// Resumes or creates the partial blob of this key. Error kNoSpace, kIo, kInvalid (another size;
  /// ask discard_partial() to give it up), kBusy (somebody fills it).
  [[nodiscard]] std::unique_ptr<PartialBlob> partial(const PartialKey& key, std::uint64_t size);
  /// Publishes a file of this content as it stands. Error: kUnsupported it is on another
  /// filesystem; kBusy a partial blob of this name is being filled; as of WriteGuard; what the
  /// check throws; kIo.
  [[nodiscard]] Blob adopt(const Digest& digest, const Adoption& adoption);
  /// Whether there is a partial blob of this key, and whether somebody fills it. In memory.
  [[nodiscard]] PartialUse partial_use(const PartialKey& key) const;
  /// Bytes already on disk for a key that is not being filled; 0 if there is none.
  [[nodiscard]] std::uint64_t partial_bytes(const PartialKey& key) const;
  /// Error(kBusy) while somebody fills it; nothing happens if there is none.
  void discard_partial(const PartialKey& key);
  /// Throws away the partial blobs that nobody asks for any more: all that nobody fills but those
  /// named.
  void discard_partials_but(const std::unordered_set<PartialKey>& kept);

  /// Unlinks a blob; whoever has it open keeps it. Returns the bytes given back, 0 if there was
  /// none.
  std::uint64_t remove(const Digest& digest);
  /// Moves a blob that is not what its name says to quarantine/ (bounded; the oldest go first).
  /// Whoever has it open keeps it. Nothing happens if there is no such blob, or if it is not the
  /// file of `identity` (identity_of() of the descriptor that was checked): a judgement on bytes
  /// that are gone says nothing of those that came in their place.
  void quarantine(const Digest& digest, const std::string& reason,
                  const std::optional<Identity>& identity = std::nullopt);
  /// Re-hashes a blob as it is on disk, past the page cache where that can be had, and quarantines
  /// it if it is not intact (`.parts` tells where; an unreadable sector counts). `progress` gets
  /// the bytes hashed since its last call and may throw to stop.
  VerifyOutcome verify(const Digest& digest, const std::function<void(std::uint64_t)>& progress);

  /// Partial blobs that nobody fills. In memory.
  [[nodiscard]] std::vector<PartialKey> idle_partials() const;

  /// False once a write failed, whoever tried it, for a reason of the disk's: an I/O error, a
  /// filesystem that was made read-only, a directory that is gone. Blobs can be found all the same,
  /// as far as they can be read. A full disk is usable.
  [[nodiscard]] bool usable() const noexcept;
  /// Why it is not usable, or that it is full; empty if all is well.
  [[nodiscard]] std::string trouble() const;
  /// Writes, flushes and removes a small file; then it is usable. Error if that fails; kNotFound
  /// where the directory is not the one that was opened.
  void probe();
  /// Whether another directory stands in its place, as after the disk was changed, if only for a
  /// copy of itself.
  [[nodiscard]] bool was_replaced() const;

  [[nodiscard]] StoreUsage usage() const;
  [[nodiscard]] std::vector<Digest> list() const;
  [[nodiscard]] const std::filesystem::path& directory() const noexcept;
  /// The device number of its filesystem, as it was when it was opened.
  [[nodiscard]] std::uint64_t filesystem() const noexcept;

 private:
  friend class PartialBlob;
  class State;
  explicit Volume(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace weightfs::store
