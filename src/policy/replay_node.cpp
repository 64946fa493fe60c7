// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "policy/replay_node.hpp"

namespace weightfs::policy {

namespace {

/// A snapshot's id for a number: different for different ones, and spread as hashes are.
Digest snapshot_of(std::uint32_t artifact) {
  Digest::Bytes bytes{};
  std::uint64_t spread =
      (std::uint64_t{artifact} + 1) * 0x9e3779b97f4a7c15;  // odd, so no two are the same
  for (std::size_t i = 0; i < sizeof spread; ++i, spread >>= 8) {
    bytes[i] = static_cast<std::uint8_t>(spread);
  }
  return Digest(bytes);
}

}  // namespace

ReplayNode::Outcome CacheNode::refer(const ReplayUse& use) {
  const Digest snapshot = snapshot_of(use.artifact);
  const Area area = area_for(snapshot, use.consumer);
  if (holdings_.find(snapshot) != nullptr) {
    if (rules_.order == CacheRules::Order::kLru) holdings_.use(snapshot, area, use.place);
    return Outcome::kHit;
  }
  const Claim claim{.snapshot = snapshot, .area = area, .bytes = use.bytes};
  if (rules_.admission != Admission::kNever && make_room_for(claim, use.place)) {
    holdings_.use(snapshot, area, use.place);
    holdings_.set_bytes(snapshot, use.bytes);
  }
  return Outcome::kMiss;
}

bool CacheNode::holds(std::uint32_t artifact) const {
  return holdings_.find(snapshot_of(artifact)) != nullptr;
}

std::uint64_t CacheNode::used() const noexcept {
  return holdings_.bytes(Area::kProbation) + holdings_.bytes(Area::kResident);
}

Area CacheNode::area_for(const Digest& snapshot, std::string_view consumer) {
  if (rules_.admission != Admission::kSecondReference) return Area::kResident;
  references_.refer(snapshot, consumer);
  return references_.proven(snapshot) ? Area::kResident : Area::kProbation;
}

bool CacheNode::make_room_for(const Claim& claim, std::int64_t now) {
  if (claim.bytes > rules_.capacity) return false;  // whatever goes
  NextUse next_use;
  if (rules_.next_use) {
    next_use = [&](const Digest& snapshot) {
      return rules_.next_use(holdings_.find(snapshot)->last_use, now);
    };
  }
  const Budget budget{.capacity = rules_.capacity, .probation = rules_.probation, .used = used()};
  const Plan plan = make_room(holdings_, budget, claim, {.next_use = next_use});
  for (const Digest& victim : plan.victims) holdings_.drop(victim);
  evictions_ += plan.victims.size();
  return plan.fits;
}

}  // namespace weightfs::policy
