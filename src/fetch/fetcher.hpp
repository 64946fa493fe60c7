// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "base/log.hpp"
#include "fetch/fetch_counters.hpp"
#include "fetch/fetcher_options.hpp"
#include "fetch/fill.hpp"
#include "fetch/fill_observer.hpp"
#include "store/adoption.hpp"
#include "store/store.hpp"

#include <memory>
#include <vector>

namespace weightfs::fetch {

/// Runs all fills: one per key however many readers, demand before the rest of a file before
/// background work, within the connection limits, with the hash following each contiguous frontier.
///
/// Threads: up to `connections` workers that get on ("fetch-N", started as needed, each runs one
/// ranged read at a time on its own stack; at most four times as many in all, see PartWorkers),
/// `hash_threads` hashers ("hash-N"), one timer ("fetch-timer": backoff, deadlines) and one
/// checkpointer ("fetch-sync": flushes, closing). Thread-safe. The destructor cancels what runs and
/// joins; partial blobs stay for the next start. `store`, `clock` and `observer` must outlive it. A
/// FillPtr may outlive it, but its reads then fail with kCancelled.
class Fetcher {
 public:
  Fetcher(store::Store& store, const Clock& clock, FillObserver& observer, FetcherOptions options,
          Log log);
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;
  ~Fetcher();

  /// For whom a fill begins. kHeld: for one who has the file open, and may have bytes of it that
  /// were streamed; what comes now goes on with them, past the disk, as keeping it would disown
  /// them.
  enum class Begin { kFresh, kHeld };

  /// Joins the running fill of the target's key or starts one (nothing is fetched before a read or
  /// a want). If the blob is complete already, the fill serves it. Touches the disk, not the
  /// network. A disk that is full or failing is no error here: the fill streams. (Under
  /// Verify::kStrict it is one, and Keep::kMemoryOnly is kUnsupported.) Error: kUnsupported a file
  /// of more than 64 TiB; kInvalid where the listing contradicts the size of what is there or being
  /// filled already; kCancelled at the end of the process.
  [[nodiscard]] FillPtr fill(const Target& target, Begin begin = Begin::kFresh);
  /// For a reader who is about to be sent to look the file up again, which the kernel does once:
  /// what the next fill would disown at its start is disowned now, so that what is found then
  /// lasts. Nothing happens while a fill of it runs, which would be joined.
  void settle(const Target& target);

  /// In place of a fill: makes a file that holds the target's bytes, as somebody has hashed them,
  /// a blob by a hard link (store/adoption.hpp). Within the room that a fill would need. A file
  /// that is being filled is left alone. Error as of Store::adopt; kNoSpace; what the adoption's
  /// check throws.
  enum class Adopted { kYes, kPresent, kFilling };
  Adopted adopt(const Target& target, const store::Adoption& adoption);

  /// What is running, to look at: these pointers keep no read-ahead going.
  [[nodiscard]] std::vector<FillPtr> fills() const;
  /// Bytes of an incomplete file that are on the local disk, its fill running or not.
  [[nodiscard]] std::uint64_t resident_bytes(const Target& target) const;
  [[nodiscard]] FetchCounters counters() const;
  /// A limit, bytes per second, for what one job wants: see Fill::set_pace().
  [[nodiscard]] std::shared_ptr<RateLimiter> make_pace(std::uint64_t rate);
  /// The limits of all fills together, FetcherOptions::fill_bandwidth and write_bandwidth, from now
  /// on; bytes per second, 0: none.
  struct Bandwidth {
    std::uint64_t fill = 0;
    std::uint64_t write = 0;
  };
  void set_bandwidth(const Bandwidth& bandwidth);
  /// Memory that holds bytes of streaming fills, bytes.
  [[nodiscard]] std::uint64_t streaming_bytes() const;

  /// Takes effect for fills that start afterwards.
  void set_keep(Keep keep);
  [[nodiscard]] Keep keep() const;

 private:
  class State;
  std::shared_ptr<State> state_;  ///< shared with the fills, which may outlive the Fetcher
};

}  // namespace weightfs::fetch
