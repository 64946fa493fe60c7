// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "base/log.hpp"
#include "fetch/fill.hpp"
#include "net/retry_policy.hpp"
#include "store/store.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

namespace weightfs::fetch {

enum class Verify { kStream, kStrict };
/// Whether bytes may go to the store at all (mode `prod`) or stream through memory (`off`, `shadow`).
enum class Keep { kStore, kMemoryOnly };

struct FetcherOptions {
  unsigned connections = 64;           ///< ranged requests at once, in all
  unsigned connections_per_blob = 16;
  std::uint64_t part_size = store::kPartSize;  ///< largest ranged request, bytes
  std::chrono::milliseconds deadline{120'000};  ///< no progress for this long ends a wait
  Verify verify = Verify::kStream;
  Keep keep = Keep::kStore;
  unsigned hash_threads = 2;
  std::uint64_t stream_memory = 128ULL << 20;  ///< for all fills that go past the disk, bytes
  std::chrono::milliseconds checkpoint_interval{1'000};
  net::RetryOptions retry;
  /// A reader that has demanded this much of one file gets the rest of that file fetched ahead.
  std::uint64_t file_ahead_after = 8ULL << 20;
  /// ... and this much (or a quarter of the file) of a weights file gets the rest of the snapshot.
  std::uint64_t snapshot_ahead_after = 64ULL << 20;
};

/// Told about what happens to fills. Called on fetch threads, without a lock held; must not block for
/// long and must not throw. Must outlive the Fetcher.
class FillObserver {
 public:
  virtual ~FillObserver() = default;
  /// Verified and published. `blob.digest` is news where the listing had none.
  virtual void on_complete(const Target& target, const store::Blob& blob) = 0;
  /// Over for now; a later open starts again. On kCorrupt the pages that readers have are poisoned.
  virtual void on_failed(const Target& target, const Error& error) = 0;
  /// Somebody reads this snapshot the way a loader does.
  virtual void on_loader(const Target& target) = 0;
};

struct FetchCounters {
  std::uint64_t requests = 0;        ///< ranged reads asked of sources
  std::uint64_t source_bytes = 0;    ///< taken from sources
  std::uint64_t retries = 0;
  std::uint64_t waited_bytes = 0;    ///< bytes that readers had to wait for (misses)
  std::uint64_t waited_reads = 0;
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;
  std::uint64_t corrupt = 0;
};

/// Runs all fills: one per key however many readers, demand before the rest of a file before background
/// work, within the connection limits, with the hash following each contiguous frontier.
///
/// Threads: up to `connections` workers ("fetch-N", started as needed, each runs one ranged read at a
/// time on its own stack), `hash_threads` hashers ("hash-N"), one timer ("fetch-timer": backoff,
/// deadlines, checkpoints). Thread-safe. The destructor cancels what runs and joins; partial blobs stay
/// for the next start. `store`, `clock` and `observer` must outlive it.
class Fetcher {
 public:
  Fetcher(store::Store& store, const Clock& clock, FillObserver& observer, FetcherOptions options,
          Log log);
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;
  ~Fetcher();

  /// Joins the running fill of the target's key or starts one (nothing is fetched before a read or a
  /// want). If the blob is complete already, the fill serves it. Touches the disk, not the network.
  /// A disk that is full or failing is no error here: the fill streams.
  [[nodiscard]] FillPtr fill(const Target& target);

  [[nodiscard]] std::vector<FillPtr> fills() const;
  /// Bytes of an incomplete file that are on the local disk, its fill running or not.
  [[nodiscard]] std::uint64_t resident_bytes(const Target& target) const;
  [[nodiscard]] FetchCounters counters() const;

  /// Takes effect for fills that start afterwards.
  void set_keep(Keep keep);
  [[nodiscard]] Keep keep() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace weightfs::fetch
