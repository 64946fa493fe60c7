// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "fetch/fetcher.hpp"

#include <memory>
#include <optional>
#include <string_view>


namespace weightfs::fetch {

struct WarmProgress {
  std::uint64_t bytes = 0;     ///< of the snapshot
  std::uint64_t written = 0;   ///< on disk, complete files included
  std::uint64_t verified = 0;  ///< in published blobs
  std::size_t files = 0;
  std::size_t files_complete = 0;
  bool running = false;
  std::optional<Error> error;  ///< the first file that failed, and why
};

/// Fetches whole snapshots in the background: small files first, then the others in natural order (the
/// number in "model-00002-of-00004" counts as a number), a few side by side so that each keeps a
/// contiguous frontier. One job per snapshot key; asking again joins it (and restarts a failed one).
///
/// Thread-safe. Has one thread ("warmer"). `fetcher` and `store` must outlive it.
class Warmer {
 public:
  Warmer(Fetcher& fetcher, store::Store& store, unsigned files_at_once, Log log);
  Warmer(const Warmer&) = delete;
  Warmer& operator=(const Warmer&) = delete;
  ~Warmer();

  /// `want` is kFile for a loader that is reading now, kBackground for a warm.
  void start(snapshot::SnapshotPtr snapshot, source::SourcePtr source, Want want);
  void stop(const Digest& snapshot_key);
  /// nullopt where no job was ever started in this process.
  [[nodiscard]] std::optional<WarmProgress> progress(const Digest& snapshot_key) const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// Names in the order in which people number them: digit runs compare as numbers. Pure.
[[nodiscard]] bool natural_less(std::string_view left, std::string_view right) noexcept;

}  // namespace weightfs::fetch
