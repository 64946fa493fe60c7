// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "policy/holdings.hpp"

#include <algorithm>

namespace weightfs::policy {

void Holdings::use(const Digest& snapshot, Area area, std::int64_t now) {
  const auto found = places_.find(snapshot);
  if (found == places_.end()) {
    Order& list = order(area);
    places_.emplace(
        snapshot,
        list.insert(list.end(), Holding{.snapshot = snapshot, .area = area, .last_use = now}));
    return;
  }
  Holding& holding = *found->second;
  const Area before = holding.area;
  const Area after = std::max(before, area);
  total(before) -= holding.bytes;
  total(after) += holding.bytes;
  holding.area = after;
  holding.last_use = now;
  order(after).splice(order(after).end(), order(before), found->second);
}

void Holdings::set_bytes(const Digest& snapshot, std::uint64_t bytes) {
  const auto found = places_.find(snapshot);
  if (found == places_.end()) return;
  Holding& holding = *found->second;
  total(holding.area) -= holding.bytes;
  total(holding.area) += bytes;
  holding.bytes = bytes;
}

void Holdings::drop(const Digest& snapshot) {
  const auto found = places_.find(snapshot);
  if (found == places_.end()) return;
  const Order::iterator place = found->second;
  total(place->area) -= place->bytes;
  places_.erase(found);  // first: `snapshot` may be the holding's own
  order(place->area).erase(place);
}

const Holding* Holdings::find(const Digest& snapshot) const {
  const auto found = places_.find(snapshot);
  return found == places_.end() ? nullptr : &*found->second;
}

std::uint64_t Holdings::bytes(Area area) const noexcept {
  return area == Area::kProbation ? probation_bytes_ : resident_bytes_;
}

void Holdings::walk(Area area, const Visit& visit) const {
  for (const Holding& holding : order(area)) {
    if (!visit(holding)) return;
  }
}

Holdings::Order& Holdings::order(Area area) noexcept {
  return area == Area::kProbation ? probation_ : residents_;
}

const Holdings::Order& Holdings::order(Area area) const noexcept {
  return area == Area::kProbation ? probation_ : residents_;
}

std::uint64_t& Holdings::total(Area area) noexcept {
  return area == Area::kProbation ? probation_bytes_ : resident_bytes_;
}

}  // namespace weightfs::policy
