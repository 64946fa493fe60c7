// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "policy/replay.hpp"

#include "policy/clairvoyant_node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace weightfs::policy {

namespace {

constexpr ReplayPolicy kPolicies[] = {
    ReplayPolicy::kSecondReference, ReplayPolicy::kLru,    ReplayPolicy::kFifo,
    ReplayPolicy::kLookahead,       ReplayPolicy::kBelady, ReplayPolicy::kNever};

double rate(std::uint64_t part, std::uint64_t whole) noexcept {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// For each reference whether its consumer had that artifact before.
std::vector<bool> repeated_references(const Trace& trace) {
  std::vector<bool> repeated;
  repeated.reserve(trace.references.size());
  std::unordered_set<std::uint64_t> seen;
  for (const TraceReference& reference : trace.references) {
    const std::uint64_t consumer = reference.consumer;
    repeated.push_back(!seen.insert(consumer << 32 | reference.artifact).second);
  }
  return repeated;
}

std::uint64_t probation_of(std::uint64_t capacity, Sizes sizes) noexcept {
  const std::uint64_t part =
      capacity / 100 * kProbationPercent + capacity % 100 * kProbationPercent / 100;
  return sizes == Sizes::kUnit ? std::max<std::uint64_t>(part, 1) : part;
}

/// Finds the node that has an artifact, where each is sent to the node that has it.
class Holders {
 public:
  explicit Holders(std::uint32_t artifacts) : last_(artifacts, 0) {}

  std::uint32_t node_for(const TraceReference& reference, std::uint64_t bytes,
                         std::span<const std::unique_ptr<ReplayNode>> nodes) {
    std::uint32_t& last = last_[reference.artifact];
    if (!nodes[last]->holds(reference.artifact)) last = roomiest(bytes, nodes);
    return last;
  }

 private:
  /// The next in turn where none has room enough: full nodes are all the same.
  std::uint32_t roomiest(std::uint64_t bytes, std::span<const std::unique_ptr<ReplayNode>> nodes) {
    const auto best = std::ranges::max_element(nodes, {}, [](const auto& n) { return n->free(); });
    if ((*best)->free() >= bytes) return static_cast<std::uint32_t>(best - nodes.begin());
    turn_ = (turn_ + 1) % static_cast<std::uint32_t>(nodes.size());
    return turn_;
  }

  std::vector<std::uint32_t> last_;  ///< where each artifact was sent
  std::uint32_t turn_ = 0;
};

}  // namespace

std::span<const ReplayPolicy> replay_policies() noexcept {
  return kPolicies;
}

std::string_view name(ReplayPolicy policy) noexcept {
  switch (policy) {
    case ReplayPolicy::kSecondReference:
      return "second-reference";
    case ReplayPolicy::kLru:
      return "lru";
    case ReplayPolicy::kFifo:
      return "fifo";
    case ReplayPolicy::kLookahead:
      return "lookahead";
    case ReplayPolicy::kBelady:
      return "belady";
    case ReplayPolicy::kNever:
      return "never";
  }
  return "unknown";
}

double ReplayResult::object_hit_rate() const noexcept {
  return rate(hits, references);
}

double ReplayResult::byte_hit_rate() const noexcept {
  return rate(bytes - pulled_bytes, bytes);
}

double ReplayResult::repeated_job_hit_rate() const noexcept {
  return rate(repeated_hits, repeated);
}

Replay::Replay(const Trace& trace, const ReplayOptions& options)
    : trace_(trace),
      options_(options),
      nodes_of_(options.placement == Placement::kHolder
                    ? std::vector<std::uint32_t>{}
                    : place(trace, options.placement, options.nodes)),
      next_(next_references(trace, nodes_of_)),
      repeated_(repeated_references(trace)) {
}

ReplayResult Replay::run(ReplayPolicy policy, std::uint64_t capacity) const {
  Nodes nodes;
  for (std::uint32_t i = 0; i < options_.nodes; ++i) nodes.push_back(make_node(policy, capacity));
  Holders holders(trace_.artifacts);

  ReplayResult result;
  for (std::size_t i = 0; i < trace_.references.size(); ++i) {
    const TraceReference& reference = trace_.references[i];
    const std::uint64_t bytes = options_.sizes == Sizes::kUnit ? 1 : reference.bytes;
    const fmt::format_int consumer(trace_.consumers == 0 ? i : reference.consumer);
    ReplayNode& node =
        *nodes[nodes_of_.empty() ? holders.node_for(reference, bytes, nodes) : nodes_of_[i]];
    const bool hit = node.refer({.place = static_cast<std::int64_t>(i),
                                 .artifact = reference.artifact,
                                 .consumer = {consumer.data(), consumer.size()},
                                 .bytes = bytes}) == ReplayNode::Outcome::kHit;
    ++result.references;
    result.bytes += bytes;
    if (hit) ++result.hits;
    if (!hit) result.pulled_bytes += bytes;
    if (repeated_[i]) ++result.repeated;
    if (repeated_[i] && hit) ++result.repeated_hits;
  }
  for (const auto& node : nodes) result.evictions += node->evictions();
  return result;
}

std::unique_ptr<ReplayNode> Replay::make_node(ReplayPolicy policy, std::uint64_t capacity) const {
  CacheRules rules{.capacity = capacity, .probation = probation_of(capacity, options_.sizes)};
  switch (policy) {
    case ReplayPolicy::kBelady:
      return std::make_unique<ClairvoyantNode>(capacity, next_);
    case ReplayPolicy::kSecondReference:
      rules.admission = Admission::kSecondReference;
      break;
    case ReplayPolicy::kNever:
      rules.admission = Admission::kNever;
      break;
    case ReplayPolicy::kFifo:
      rules.order = CacheRules::Order::kFifo;
      break;
    case ReplayPolicy::kLookahead:
      rules.next_use = [this](std::int64_t last, std::int64_t now) { return foreseen(last, now); };
      break;
    case ReplayPolicy::kLru:
      break;
  }
  return std::make_unique<CacheNode>(std::move(rules));
}

std::optional<std::int64_t> Replay::foreseen(std::int64_t last, std::int64_t now) const {
  const std::int64_t next = next_[static_cast<std::size_t>(last)];
  if (next == kNoNextReference) return std::nullopt;
  bool in_sight = false;
  if (const auto* const references = std::get_if<std::int64_t>(&options_.lookahead)) {
    in_sight = next - now <= *references;
  } else {
    const auto time = [&](std::int64_t at) {
      return trace_.references[static_cast<std::size_t>(at)].time;
    };
    in_sight = time(next) - time(now) <= std::get<std::chrono::milliseconds>(options_.lookahead);
  }
  return in_sight ? std::optional(next) : std::nullopt;
}

}  // namespace weightfs::policy
