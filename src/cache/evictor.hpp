// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "catalog/catalog.hpp"
#include "digest/digest.hpp"
#include "snapshot/snapshot.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace weightfs::cache {

/// Told what leaves the store, on the thread that makes it leave. Must not call the Governor or the
/// Fetcher.
class EvictionObserver {
 public:
  virtual ~EvictionObserver() = default;
  /// The blob is no longer in the store.
  virtual void blob_gone(const Digest& digest) = 0;
  /// What was fetched of this content is about to be thrown away without a verdict.
  virtual void bytes_discarded(const Digest& content_key) = 0;
};

/// What an eviction gave back, or would.
struct Evicted {
  std::uint64_t blobs = 0;
  std::uint64_t bytes = 0;
  std::uint64_t shared_blobs = 0;  ///< stayed, because another snapshot has them
  std::uint64_t shared_bytes = 0;
};

/// Takes snapshots out of the store, file by file, but for the blobs that they share with others:
/// those go with the last that has them.
///
/// Stateless; thread-safe. What is given must outlive it.
class Evictor {
 public:
  Evictor(store::Store& store, const catalog::Catalog& catalog, EvictionObserver& observer)
      : store_(store), catalog_(catalog), observer_(observer) {}

  /// Whether the blobs of this snapshot are to stay, when they are shared.
  using Keeps = std::function<bool(const Digest& snapshot_key)>;
  enum class Do { kEvict, kCount };
  /// Linear in the files of all snapshots that `keeps` names. Partial blobs that somebody fills
  /// stay; the others go uncounted.
  Evicted evict(const snapshot::SnapshotPtr& snapshot, const Keeps& keeps, Do what) const;

 private:
  void discard_partial(const Digest& content_key, bool digest_known) const;

  store::Store& store_;
  const catalog::Catalog& catalog_;
  EvictionObserver& observer_;
};

}  // namespace weightfs::cache
