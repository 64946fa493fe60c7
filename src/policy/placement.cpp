// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "policy/placement.hpp"

#include <stdexcept>
#include <unordered_map>

namespace weightfs::policy {

namespace {

/// The finaliser of SplitMix64: each bit of the result depends on each of `value`.
std::uint64_t mixed(std::uint64_t value) noexcept {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

std::uint32_t heaviest_node(std::uint32_t artifact, std::uint32_t nodes) {
  std::uint32_t best = 0;
  std::uint64_t most = 0;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const std::uint64_t weight = mixed(mixed(artifact) ^ node);
    if (node == 0 || weight > most) {
      best = node;
      most = weight;
    }
  }
  return best;
}

}  // namespace

std::vector<std::uint32_t> place(const Trace& trace, Placement placement, std::uint32_t nodes) {
  std::vector<std::uint32_t> nodes_of;
  nodes_of.reserve(trace.references.size());
  switch (placement) {
    case Placement::kRecorded:
      for (const TraceReference& reference : trace.references) nodes_of.push_back(reference.node);
      break;
    case Placement::kRandom:
      for (std::size_t i = 0; i < trace.references.size(); ++i) {
        nodes_of.push_back(static_cast<std::uint32_t>(mixed(i) % nodes));
      }
      break;
    case Placement::kRendezvous: {
      std::vector<std::uint32_t> node_of_artifact;
      for (std::uint32_t artifact = 0; artifact < trace.artifacts; ++artifact) {
        node_of_artifact.push_back(heaviest_node(artifact, nodes));
      }
      for (const TraceReference& reference : trace.references) {
        nodes_of.push_back(node_of_artifact[reference.artifact]);
      }
      break;
    }
    case Placement::kHolder:
      throw std::logic_error("where the holder is depends on what the nodes hold");
  }
  return nodes_of;
}

std::vector<std::int64_t> next_references(const Trace& trace,
                                          const std::vector<std::uint32_t>& nodes_of) {
  std::vector<std::int64_t> next(trace.references.size(), kNoNextReference);
  std::unordered_map<std::uint64_t, std::int64_t> later;
  later.reserve(trace.artifacts);
  for (std::size_t i = next.size(); i-- > 0;) {
    const std::uint64_t node = nodes_of.empty() ? 0 : nodes_of[i];
    const auto [place, is_last] =
        later.try_emplace(node << 32 | trace.references[i].artifact, static_cast<std::int64_t>(i));
    if (is_last) continue;
    next[i] = place->second;
    place->second = static_cast<std::int64_t>(i);
  }
  return next;
}

}  // namespace weightfs::policy
