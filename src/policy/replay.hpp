// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "policy/placement.hpp"
#include "policy/replay_node.hpp"
#include "policy/trace.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace weightfs::policy {

enum class ReplayPolicy {
  kSecondReference,  ///< the daemon's default
  kLru,              ///< everything is kept; the least recently used goes
  kFifo,             ///< everything is kept; the oldest goes
  kLookahead,        ///< lru that knows the next references, and spares what they need
  kBelady,           ///< the clairvoyant optimum
  kNever,            ///< nothing is kept
};
[[nodiscard]] std::span<const ReplayPolicy> replay_policies() noexcept;
/// As in "second-reference".
[[nodiscard]] std::string_view name(ReplayPolicy policy) noexcept;

/// How far a scheduler sees ahead: so many references, or so much time.
using Lookahead = std::variant<std::int64_t, std::chrono::milliseconds>;

/// What an artifact takes.
enum class Sizes { kUnit, kOfTrace };

struct ReplayOptions {
  std::uint32_t nodes = 1;
  Placement placement = Placement::kRandom;
  Sizes sizes = Sizes::kUnit;
  Lookahead lookahead = std::int64_t{20};
};

/// What one policy made of a trace. Rates are from 0 to 1, and 0 where nothing was counted.
struct ReplayResult {
  std::uint64_t references = 0;
  std::uint64_t hits = 0;
  std::uint64_t bytes = 0;
  std::uint64_t pulled_bytes = 0;  ///< of the misses
  std::uint64_t repeated = 0;      ///< references of a consumer to an artifact that it had before
  std::uint64_t repeated_hits = 0;
  std::uint64_t evictions = 0;

  [[nodiscard]] double object_hit_rate() const noexcept;
  [[nodiscard]] double byte_hit_rate() const noexcept;
  [[nodiscard]] double repeated_job_hit_rate() const noexcept;
};

/// What the nodes of a fleet would have done with a trace: each node decides with the daemon's own
/// References, Holdings and make_room, and one reference is over before the next begins. Pulls what
/// is larger than its area past the disk, which is a miss that evicts nothing. Where an artifact's
/// size changes, a hit counts the new one, and what is held takes what it took when it was pulled.
/// Where the trace names no consumers, every reference is a consumer of its own to admission, and
/// one to a known artifact is a repeated job.
///
/// Thread-safe. The trace must outlive it.
class Replay {
 public:
  Replay(const Trace& trace, const ReplayOptions& options);

  /// `capacity` is each node's, in bytes or, with unit sizes, in artifacts.
  [[nodiscard]] ReplayResult run(ReplayPolicy policy, std::uint64_t capacity) const;

 private:
  using Nodes = std::vector<std::unique_ptr<ReplayNode>>;

  [[nodiscard]] std::unique_ptr<ReplayNode> make_node(ReplayPolicy policy,
                                                      std::uint64_t capacity) const;
  [[nodiscard]] std::optional<std::int64_t> foreseen(std::int64_t last, std::int64_t now) const;

  const Trace& trace_;
  const ReplayOptions options_;
  std::vector<std::uint32_t> nodes_of_;  ///< each reference's; empty where what they hold decides
  std::vector<std::int64_t> next_;
  std::vector<bool> repeated_;
};

}  // namespace weightfs::policy
