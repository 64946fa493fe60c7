// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "base/synchronized.hpp"
#include "cache/weights.hpp"
#include "digest/digest.hpp"
#include "snapshot/snapshot.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace weightfs::vfs {

/// Tells one use of a snapshot by a consumer from the next, for the record of who used what when.
///
/// A use begins with the first open. Opening more of the files belongs to it, however long that
/// takes: a loader goes through the shards one by one. So does opening a file again, as loaders do
/// for its header, and the ranks of one pod for all of it. A consumer that opens a file again after
/// nobody has had anything of the snapshot open for kPause has come back: that is another use.
///
/// The memory is bounded, and starts over when it is full, or with the daemon. Thread-safe. `clock`
/// must outlive it.
class UseLedger {
 public:
  static constexpr std::chrono::seconds kPause{1};
  static constexpr std::size_t kRemembered = 256 << 10;  ///< files, of all uses

  explicit UseLedger(const Clock& clock) : clock_(clock) {}

  /// Whether this use has come to the weights with that: then it is a reference. closed() must
  /// follow some day.
  bool opened(const snapshot::Snapshot& snapshot, std::size_t file_index,
              const std::string& consumer);
  /// What was opened is not complete. Whether that is so for the first time in this use.
  bool missed(const Digest& snapshot_key, std::size_t file_index, const std::string& consumer);
  /// Somebody had it open before this daemon was there.
  void adopted(const Digest& snapshot_key, std::uint32_t opens);
  void closed(const Digest& snapshot_key);

 private:
  struct Use {
    bool referred = false;
    std::unordered_set<std::size_t> files;   ///< opened
    std::unordered_set<std::size_t> missed;  ///< of these
  };
  struct Uses {
    std::uint64_t opens = 0;  ///< now, by anybody
    Clock::TimePoint last_close;
    std::unordered_map<std::string, Use> by_consumer;
  };
  struct State {
    std::unordered_map<Digest, Uses> uses;
    std::size_t files = 0;
    cache::Weights weights;
  };

  static void forget(State& state);

  const Clock& clock_;
  Synchronized<State> state_;
};

}  // namespace weightfs::vfs
