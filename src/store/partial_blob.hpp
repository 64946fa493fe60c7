// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/byte_range.hpp"
#include "base/fd.hpp"
#include "digest/digest.hpp"
#include "digest/sha256.hpp"
#include "store/blob.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weightfs::store {

class Volume;

/// Names the bytes that a partial blob will hold, before they are there: the digest where it is
/// known, else the sha256 over source, path and validator. The folder under partial/ is its hex.
using PartialKey = Digest;

/// Bytes are tracked in blocks of this size: the grain of a demand fetch, and of `map`.
inline constexpr std::uint64_t kBlockSize = 64 << 10;
/// The distance between two midstates in `<digest>.parts`, and the largest ranged request by
/// default.
inline constexpr std::uint64_t kPartSize = 8 << 20;

/// A blob being filled: `partial/<key>/{data,map}`. Preallocated, so that holes cannot be mistaken
/// for content and the disk is full at the start rather than in the middle.
///
/// Blocks are *written* once write() returned and set_written() marked them; the map on disk says
/// so at once (a killed process loses nothing in the same boot: the page cache is still there) and
/// says *durable* after checkpoint() (fdatasync of the data, then the map): after another boot only
/// durable blocks are believed. Format: FORMAT.md.
///
/// One object per key at a time. Thread-safe: distinct ranges may be written and read concurrently;
/// what ends it is called once nobody else uses it. Must not outlive its Volume. Destruction keeps
/// the files, so that the next fill resumes; only discard(), quarantine() and commit() end them.
class PartialBlob {
 public:
  PartialBlob(const PartialBlob&) = delete;
  PartialBlob& operator=(const PartialBlob&) = delete;
  ~PartialBlob();

  /// Bytes in blocks that are written.
  [[nodiscard]] std::uint64_t written_bytes() const;
  /// One flag per block, as resumed from the map or set since.
  [[nodiscard]] std::vector<bool> written_blocks() const;

  /// Throws Error: kNoSpace, kIo; after the first it can be done again.
  void write(std::uint64_t offset, std::span<const std::byte> data);
  /// Marks the blocks that lie entirely within `range` (the last block of the file may be short).
  /// Error as of write().
  void set_written(ByteRange range);
  /// Makes the data a reflink of `original`, a file of the same size on the same filesystem, at no
  /// cost in bytes (FICLONE). False where the filesystem cannot; nothing has changed then. Marks
  /// nothing as written.
  [[nodiscard]] bool clone_from(const Fd& original);
  /// To read bytes that are known to be written.
  [[nodiscard]] const Fd& fd() const noexcept;
  /// Makes what is written durable. Slow (a disk flush); never under a lock of the caller. Error
  /// kNoSpace, kIo. Can be called again after the first, unless the disk has lost data that it had
  /// taken: then blocks that were not durable before are no longer written, and every checkpoint
  /// and commit() from now on is kIo.
  void checkpoint();

  /// Publishes (FORMAT.md has the order). The caller has
  /// hashed every byte and `digest` is what it found; `midstates` holds one entry per part boundary
  /// before the end, or nothing (then the blob can only be checked as a whole). If the blob exists
  /// already and was verified in this boot, this one is dropped; one that was not is replaced. The
  /// object is used up afterwards. After an Error (kNoSpace, kIo) nothing is published; the object
  /// can be committed again, but for what checkpoint() says of lost data, or discarded.
  [[nodiscard]] Blob commit(const Digest& digest, std::span<const Midstate> midstates);
  /// Removes the files.
  void discard();
  /// Moves the data to quarantine/ with a note of `reason`, for a person to look at.
  void quarantine(const std::string& reason);

 private:
  friend class Volume;
  class State;
  explicit PartialBlob(std::unique_ptr<State> state);
  void refuse_lost() const;
  void flush();
  [[nodiscard]] Blob publish(const Digest& digest, std::span<const Midstate> midstates);
  std::unique_ptr<State> state_;
};

}  // namespace weightfs::store
