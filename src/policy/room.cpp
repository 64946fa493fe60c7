// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "policy/room.hpp"

#include <algorithm>
#include <limits>
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
  Selection(const Holdings& holdings, const Digest& spared, const GuardOf& guard_of,
            const NextUse& next_use)
      : holdings_(holdings), spared_(spared), guard_of_(guard_of), next_use_(next_use) {}

  /// Takes from `area` until `wanted` bytes are free or there is nothing more; returns the bytes.
  std::uint64_t take(Area area, std::uint64_t wanted) {
    std::uint64_t freed = 0;
    std::vector<Needed> needed;
    holdings_.walk(area, [&](const Holding& holding) {
      if (freed >= wanted) return false;
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
    if (holding.snapshot == spared_) return false;
    const auto guard = guard_of_ ? guard_of_(holding) : std::nullopt;
    if (guard) kept[*guard] += holding.bytes;
    return !guard;
  }

  [[nodiscard]] std::optional<std::int64_t> next_use_of(const Holding& holding) const {
    return next_use_ ? next_use_(holding.snapshot) : std::nullopt;
  }

  std::uint64_t evict(const Holding& holding) {
    victims.push_back(holding.snapshot);
    return holding.bytes;
  }

  const Holdings& holdings_;
  const Digest& spared_;
  const GuardOf& guard_of_;
  const NextUse& next_use_;
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
  }
  return "unknown";
}

Plan make_room(const Holdings& holdings, const Budget& budget, const Claim& claim,
               const GuardOf& guard_of, const NextUse& next_use) {
  std::uint64_t lacking = excess(budget.used, claim.bytes, budget.capacity);
  std::uint64_t lacking_on_probation = 0;
  if (claim.area == Area::kProbation) {
    lacking_on_probation = excess(holdings.bytes(Area::kProbation), claim.bytes, budget.probation);
  }

  Selection selection(holdings, claim.snapshot, guard_of, next_use);
  const std::uint64_t freed =
      selection.take(Area::kProbation, std::max(lacking, lacking_on_probation));
  lacking = less(lacking, freed);
  lacking_on_probation = less(lacking_on_probation, freed);
  // Residents cannot help a claim that is more than the probation area takes.
  if (lacking_on_probation == 0) lacking = less(lacking, selection.take(Area::kResident, lacking));

  Plan plan{.short_of = std::max(lacking, lacking_on_probation), .kept = std::move(selection.kept)};
  plan.fits = plan.short_of == 0;
  if (plan.fits) plan.victims = std::move(selection.victims);
  return plan;
}

}  // namespace weightfs::policy
