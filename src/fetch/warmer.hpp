// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/log.hpp"
#include "fetch/fetcher.hpp"
#include "fetch/natural_order.hpp"
#include "fetch/warm_job.hpp"
#include "store/store.hpp"

#include <memory>
#include <optional>

namespace weightfs::fetch {

/// Fetches whole snapshots in the background: small files first, then the others in natural order
/// (the number in "model-00002-of-00004" counts as a number), a few side by side so that each keeps
/// a contiguous frontier. One job per snapshot key; asking again joins it (and restarts a failed
/// one). Trouble with one file is noted and the others go on; a source or a disk that is out of
/// reach ends the job.
///
/// Jobs run side by side, but for the connections: those of a loader come first, then those that
/// are due, the earliest first, and those that are not due at any time have what is left over.
///
/// Thread-safe. Has one thread ("warmer"). `fetcher` and `store` must outlive it.
class Warmer {
 public:
  Warmer(Fetcher& fetcher, store::Store& store, unsigned files_at_once, Log log);
  Warmer(const Warmer&) = delete;
  Warmer& operator=(const Warmer&) = delete;
  ~Warmer();

  /// `want` is kFile for a loader that is reading now, kBackground for a warm. `precedence` says
  /// when it is due, if at any time; said again, the last one counts for the files to come. `pace`
  /// limits what is due (Fetcher::make_pace), as long as nobody wants it without a time.
  void start(snapshot::SnapshotPtr snapshot, source::SourcePtr source, Want want,
             const Precedence& precedence = {}, std::shared_ptr<RateLimiter> pace = nullptr);
  /// It is not due any more: stops it, unless it was also started without a time.
  void excuse(const Digest& snapshot_key);
  /// Lets its fills go. progress() then says that it does not run, without an error.
  void stop(const Digest& snapshot_key);
  /// How far it is, or how it ended. nullopt where no job was started in this process, or so many
  /// ended since that it is forgotten.
  [[nodiscard]] std::optional<WarmProgress> progress(const Digest& snapshot_key) const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace weightfs::fetch
