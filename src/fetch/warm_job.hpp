// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/error.hpp"
#include "fetch/fill.hpp"
#include "snapshot/snapshot.hpp"
#include "source/source.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

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

/// One snapshot on its way: which files are still to come, which are being filled, how it went.
/// Holds the fills that it waits for, which keeps them going. Starts nothing itself: Warmer does.
///
/// Not thread-safe.
class WarmJob {
 public:
  /// Why it runs. Whoever gives no time when it is due has asked for it all the same.
  struct Purpose {
    Want want = Want::kBackground;
    Precedence precedence;
    std::shared_ptr<RateLimiter> pace = {};  ///< of what is due, as Fill::set_pace()
  };
  WarmJob(snapshot::SnapshotPtr snapshot, source::SourcePtr source, unsigned files_at_once,
          const Purpose& purpose);

  /// The next file to look at, where there is room beside those under way.
  [[nodiscard]] std::optional<Target> next();
  /// What became of it: it was there already, ...
  void found(const Target& target);
  /// ... it is being filled (let go of at once if the job was stopped meanwhile), ...
  void filling(FillPtr fill);
  /// ... or it cannot be.
  void failed(const Target& target, const Error& error);

  /// Books the fills that have ended.
  void reap();
  /// One more purpose. Where both say when it is due, the new one counts: it was put off, or
  /// brought forward. Returns the fills under way, to be told without a lock.
  [[nodiscard]] std::vector<FillPtr> add(const Purpose& purpose);
  /// It is not due at any time any more. Returns whether somebody has asked for it all the same.
  [[nodiscard]] bool excuse() noexcept;
  /// Lets go of everything; returns the fills, to be released without a lock.
  [[nodiscard]] std::vector<FillPtr> stop();

  [[nodiscard]] Want want() const noexcept { return want_; }
  [[nodiscard]] const Precedence& precedence() const noexcept { return precedence_; }
  /// None where somebody has asked for it without a time.
  [[nodiscard]] std::shared_ptr<RateLimiter> pace() const { return asked_for_ ? nullptr : pace_; }
  [[nodiscard]] bool running() const noexcept {
    return opening_ > 0 || !fills_.empty() || !pending_.empty();
  }
  [[nodiscard]] WarmProgress progress() const;

 private:
  void succeed(const Target& target);
  void fail(const Target& target, const Error& error);

  snapshot::SnapshotPtr snapshot_;
  source::SourcePtr source_;
  unsigned files_at_once_;
  Want want_;
  Precedence precedence_;
  std::shared_ptr<RateLimiter> pace_;
  bool asked_for_;                   ///< by somebody who gave no time when it is due
  std::deque<std::size_t> pending_;  ///< indices of files, in order
  std::size_t opening_ = 0;          ///< given out by next(), not booked yet
  std::vector<FillPtr> fills_;
  std::uint64_t verified_ = 0;
  std::size_t complete_ = 0;
  std::optional<Error> error_;
  bool stopped_ = false;
};

/// The order in which a snapshot is fetched: small files first (a runtime reads its configuration
/// before its weights), then the others in natural order. Pure.
[[nodiscard]] std::vector<std::size_t> warm_order(const snapshot::Snapshot& snapshot);

}  // namespace weightfs::fetch
