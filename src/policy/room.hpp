// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "policy/holdings.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <vector>

namespace weightfs::policy {

/// Why a snapshot must not go now.
enum class Guard : std::uint8_t {
  kOpen,       ///< open or mapped by somebody
  kPinned,     ///< by a person
  kLeased,     ///< by a scheduler, for a job to come or under way
  kFilling,    ///< bytes of it are on their way
  kConfirmed,  ///< what a name would be rolled back to, within its window
  kFloor,      ///< its tenant would fall below what it was promised
  kSetAside,   ///< on a disk that cannot be written to: it would give nothing back
};
const char* name(Guard guard) noexcept;

/// What make_room asks of a snapshot; none: nothing is guarded. Pure for the time of the call.
using GuardOf = std::function<std::optional<Guard>(const Holding&)>;
/// When it is needed next, as far as anybody knows: smaller is sooner. nullopt: nobody says. None:
/// nobody says of any. Pure for the time of the call.
using NextUse = std::function<std::optional<std::int64_t>(const Digest& snapshot)>;

/// What a tenant was promised, and what it may have at most; bytes.
struct TenantLimits {
  std::uint64_t floor = 0;
  std::uint64_t cap = std::numeric_limits<std::uint64_t>::max();
};

/// Who shares the node. Where there are no tenants, nobody is promised anything.
struct Tenancy {
  std::vector<TenantLimits> limits;
  /// An index of `limits`; nullopt: nobody's. Pure for the time of the call.
  std::function<std::optional<std::size_t>(const Digest& snapshot)> tenant_of;
};

/// What make_room goes by, beyond the order of use.
struct Rules {
  GuardOf guard_of;
  NextUse next_use;
  Tenancy tenancy;
};

/// The probation area's part of the capacity, where nothing else is configured.
inline constexpr unsigned kProbationPercent = 20;

struct Budget {
  std::uint64_t capacity = 0;   ///< bytes, all areas, fills and evicted but open blobs included
  std::uint64_t probation = 0;  ///< bytes that the probation area may have, at most
  std::uint64_t used = 0;       ///< bytes of the capacity in use now
};

struct Claim {
  Digest snapshot;  ///< for whom; never a victim itself
  Area area = Area::kResident;
  std::uint64_t bytes = 0;  ///< to be added
};

/// What is to go so that a claim fits; in this order.
struct Plan {
  bool fits = false;
  std::vector<Digest> victims;          ///< none where it does not fit whatever goes
  std::uint64_t short_of = 0;           ///< bytes that are missing even then
  bool over_cap = false;                ///< missing of what the claim's tenant may have
  std::map<Guard, std::uint64_t> kept;  ///< bytes that were passed over, by reason
};

/// Decides what is evicted: the probation area stays within its bounds; what is on probation goes
/// before residents; within an area, what nobody is known to need goes first, least recently used
/// first, then what is needed furthest in the future (Belady 1966: with full knowledge that is
/// optimal). A claim on probation that is larger than its area does not fit. No tenant falls below
/// its floor for another's claim, and none gets beyond its cap: its own snapshots go first, then.
///
/// A holding that gives nothing back takes its turn like any other. So where snapshots share blobs,
/// let shared bytes count with the one of them that was used last: then what goes in this order
/// gives back what the plan counts on.
///
/// Linear in what it looks at: the victims, and what is guarded or needed before the last of them;
/// with tenants, in all holdings.
[[nodiscard]] Plan make_room(const Holdings& holdings, const Budget& budget, const Claim& claim,
                             const Rules& rules);

}  // namespace weightfs::policy
