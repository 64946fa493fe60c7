// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "policy/clairvoyant_node.hpp"

#include <iterator>

namespace weightfs::policy {

ReplayNode::Outcome ClairvoyantNode::refer(const ReplayUse& use) {
  const std::int64_t next = next_[static_cast<std::size_t>(use.place)];
  if (const auto found = held_.find(use.artifact); found != held_.end()) {
    order_.erase({found->second.next, use.artifact});
    order_.emplace(next, use.artifact);
    found->second.next = next;
    return Outcome::kHit;
  }
  if (make_room_for(use.bytes, next)) {
    held_.emplace(use.artifact, Held{.next = next, .bytes = use.bytes});
    order_.emplace(next, use.artifact);
    free_ -= use.bytes;
  }
  return Outcome::kMiss;
}

bool ClairvoyantNode::make_room_for(std::uint64_t bytes, std::int64_t next) {
  std::uint64_t room = free_;
  auto first_victim = order_.end();
  while (room < bytes) {
    if (first_victim == order_.begin() || std::prev(first_victim)->first <= next) return false;
    --first_victim;
    room += held_.at(first_victim->second).bytes;
  }
  while (first_victim != order_.end()) {
    held_.erase(first_victim->second);
    first_victim = order_.erase(first_victim);
    ++evictions_;
  }
  free_ = room;
  return true;
}

}  // namespace weightfs::policy
