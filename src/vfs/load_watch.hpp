// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "base/synchronized.hpp"
#include "digest/digest.hpp"
#include "vfs/node_id.hpp"
#include "vfs/places.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

namespace weightfs::vfs {

/// Knows who is loading a model through its name, so that the name is not flipped under it: a
/// loader that opens shard by shard, path by path, would get shards of two revisions.
///
/// A consumer loads from its first open of a file of weights through the name on, until it has
/// opened each of them and none that it opened is being fetched; or until it opens no other for
/// kBetweenFiles, or for kWithFile while it still has the last one open and complete.
///
/// Thread-safe. opened() waits for a flip that is being written to disk. The clock must outlive it.
class LoadWatch {
 public:
  static constexpr std::chrono::seconds kBetweenFiles{10};
  static constexpr std::chrono::seconds kWithFile{30};
  /// For so long after a flip, who has just looked a file up may not have heard of it.
  static constexpr std::chrono::seconds kStale{2};

  /// Whether what serves an open node is a fill that goes on. Called under a lock; must not block.
  using Filling = std::function<bool(NodeId)>;

  LoadWatch(const Clock& clock, Filling filling);

  /// Before an open of a file is answered with success. Throws Error(kChanged) where the file is of
  /// a revision that the name does not show since a moment ago, to a consumer that did not load
  /// that one: the kernel looks up again, and finds the new one. Once per consumer and node, for
  /// whoever is inside the old directory finds the same again.
  void opened(const Place& file, NodeId node, const std::string& consumer);
  /// For each open that ended, of whatever file.
  void closed(NodeId node);

  enum class Loaders { kRespected, kIgnored };
  struct Outcome {
    bool flipped = false;
    std::string loader;  ///< a consumer that was loading
  };
  /// Runs `flip`, which moves `name` away from the revision `from`, unless somebody is loading that
  /// and is to be respected. No load of it begins meanwhile.
  Outcome flip(const std::string& name, const Digest& from, Loaders loaders,
               const std::function<void()>& flip);

 private:
  using View = std::pair<std::string, Digest>;  ///< a name, and the revision that it shows
  struct Load {
    std::size_t weights = 0;                 ///< files of weights that the revision has
    std::map<std::uint32_t, NodeId> opened;  ///< of those, by index
    NodeId latest{0};
    Clock::TimePoint time;  ///< of the latest open, or of its close
  };
  struct Past {
    Clock::TimePoint time;
    std::set<std::pair<std::string, std::uint64_t>> told;  ///< consumer and node
  };
  struct State {
    std::map<std::pair<View, std::string>, Load> loads;     ///< by consumer
    std::unordered_map<std::uint64_t, std::uint32_t> open;  ///< nodes of weights
    std::set<std::string> flipping;                         ///< names
    std::map<View, Past> past;
  };

  [[nodiscard]] bool goes_on(const State& state, const Load& load) const;
  [[nodiscard]] std::optional<std::string> loader(const State& state, const View& view) const;
  void forget_old(State& state) const;

  const Clock& clock_;
  const Filling filling_;
  std::condition_variable_any flipped_;
  Synchronized<State> state_;
};

}  // namespace weightfs::vfs
