// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "policy/room.hpp"

#include <algorithm>
#include <limits>
#include <unordered_set>
#include <utility>

namespace weightfs::policy {

namespace {

std::uint64_t less(std::uint64_t value, std::uint64_t subtrahend) noexcept {
  return value > subtrahend ? value - subtrahend : 0;
}

/// By how much `used` and `added` are more than `limit`.
std::uint64_t excess(std::uint64_t used, std::uint64_t added, std::uint64_t limit) noexcept {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(used, added, &sum)) sum = std::numeric_limits<std::uint64_t>::max();
  return less(sum, limit);
}

/// Picks victims for one claim.
class Selection {
 public:
  Selection(const Holdings& holdings, const Digest& spared, const Rules& rules)
      : holdings_(holdings), spared_(spared), rules_(rules), held_(rules.tenancy.limits.size()) {
    if (held_.empty()) return;
    claimer_ = tenant_of(spared);
    for (const Area area : {Area::kProbation, Area::kResident}) {
      holdings.walk(area, [&](const Holding& holding) {
        if (const auto tenant = tenant_of(holding.snapshot)) held_[*tenant] += holding.bytes;
        return true;
      });
    }
  }

  /// By how much the claimer's tenant would be over its cap.
  [[nodiscard]] std::uint64_t over_cap(std::uint64_t added) const {
    if (!claimer_) return 0;
    return excess(held_[*claimer_], added, rules_.tenancy.limits[*claimer_].cap);
  }

  enum class Whose { kAnybodys, kOfTheClaimer };
  /// Takes from `area` until `wanted` bytes are free or there is nothing more; returns the bytes.
  std::uint64_t take(Area area, std::uint64_t wanted, Whose whose = Whose::kAnybodys) {
    std::uint64_t freed = 0;
    std::vector<Needed> needed;
    holdings_.walk(area, [&](const Holding& holding) {
      if (freed >= wanted) return false;
      if (whose == Whose::kOfTheClaimer && tenant_of(holding.snapshot) != claimer_) return true;
      if (!may_go(holding)) return true;
      if (const auto use = next_use_of(holding)) {
        needed.push_back({.use = *use, .place = needed.size(), .holding = &holding});
      } else {
        freed += evict(holding);
      }
      return true;
    });
    std::ranges::sort(needed, goes_before);
    for (const Needed& next : needed) {
      if (freed >= wanted) break;
      freed += evict(*next.holding);
    }
    return freed;
  }

  std::vector<Digest> victims;
  std::map<Guard, std::uint64_t> kept;

 private:
  struct Needed {
    std::int64_t use = 0;
    std::size_t place = 0;  ///< less recently used is less
    const Holding* holding = nullptr;
  };

  static bool goes_before(const Needed& left, const Needed& right) {
    return left.use != right.use ? left.use > right.use : left.place < right.place;
  }

  bool may_go(const Holding& holding) {
    if (holding.snapshot == spared_ || gone_.contains(holding.snapshot)) return false;
    const auto guard = rules_.guard_of ? rules_.guard_of(holding) : std::nullopt;
    if (guard) keep(holding, *guard);
    return !guard;
  }

  void keep(const Holding& holding, Guard guard) {
    if (held_.empty() || kept_.insert(holding.snapshot).second) kept[guard] += holding.bytes;
  }

  [[nodiscard]] std::optional<std::int64_t> next_use_of(const Holding& holding) const {
    return rules_.next_use ? rules_.next_use(holding.snapshot) : std::nullopt;
  }

  [[nodiscard]] std::optional<std::size_t> tenant_of(const Digest& snapshot) const {
    return held_.empty() ? std::nullopt : rules_.tenancy.tenant_of(snapshot);
  }

  /// 0 where its tenant would fall below its floor for somebody else.
  std::uint64_t evict(const Holding& holding) {
    const auto tenant = tenant_of(holding.snapshot);
    if (tenant) {
      const std::uint64_t left = less(held_[*tenant], holding.bytes);
      if (tenant != claimer_ && left < rules_.tenancy.limits[*tenant].floor) {
        keep(holding, Guard::kFloor);
        return 0;
      }
      held_[*tenant] = left;
    }
    victims.push_back(holding.snapshot);
    if (!held_.empty()) gone_.insert(holding.snapshot);
    return holding.bytes;
  }

  const Holdings& holdings_;
  const Digest& spared_;
  const Rules& rules_;
  std::optional<std::size_t> claimer_;  ///< its tenant
  std::vector<std::uint64_t> held_;     ///< bytes by tenant
  // Where they can be met twice, for with tenants the claimer's own are looked at first:
  std::unordered_set<Digest> gone_;  ///< victims
  std::unordered_set<Digest> kept_;  ///< passed over, and counted
};

}  // namespace

const char* name(Guard guard) noexcept {
  switch (guard) {
    case Guard::kOpen:
      return "open";
    case Guard::kPinned:
      return "pinned";
    case Guard::kLeased:
      return "leased";
    case Guard::kFilling:
      return "filling";
    case Guard::kConfirmed:
      return "confirmed";
    case Guard::kFloor:
      return "floor";
    case Guard::kSetAside:
      return "set aside";
  }
  return "unknown";
}

Plan make_room(const Holdings& holdings, const Budget& budget, const Claim& claim,
               const Rules& rules) {
  Selection selection(holdings, claim.snapshot, rules);
  std::uint64_t over_cap = selection.over_cap(claim.bytes);
  const auto own = Selection::Whose::kOfTheClaimer;
  const std::uint64_t own_on_probation = selection.take(Area::kProbation, over_cap, own);
  over_cap = less(over_cap, own_on_probation);
  const std::uint64_t own_residents = selection.take(Area::kResident, over_cap, own);
  over_cap = less(over_cap, own_residents);

  std::uint64_t lacking = excess(budget.used, claim.bytes, budget.capacity);
  lacking = less(lacking, own_on_probation + own_residents);
  std::uint64_t lacking_on_probation = 0;
  if (claim.area == Area::kProbation) {
    lacking_on_probation = excess(holdings.bytes(Area::kProbation), claim.bytes, budget.probation);
    lacking_on_probation = less(lacking_on_probation, own_on_probation);
  }
  const std::uint64_t freed =
      selection.take(Area::kProbation, std::max(lacking, lacking_on_probation));
  lacking = less(lacking, freed);
  lacking_on_probation = less(lacking_on_probation, freed);
  // Residents cannot help a claim that is more than the probation area takes.
  if (lacking_on_probation == 0) lacking = less(lacking, selection.take(Area::kResident, lacking));

  Plan plan{.short_of = std::max({lacking, lacking_on_probation, over_cap}),
            .over_cap = over_cap > 0,
            .kept = std::move(selection.kept)};
  plan.fits = plan.short_of == 0;
  if (plan.fits) plan.victims = std::move(selection.victims);
  return plan;
}

}  // namespace weightfs::policy
