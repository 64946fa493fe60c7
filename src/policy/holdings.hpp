// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "digest/digest.hpp"

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <unordered_map>

namespace weightfs::policy {

/// Where a snapshot's bytes count: on probation until a second reference, then resident.
enum class Area : std::uint8_t { kProbation, kResident };

struct Holding {
  Digest snapshot;
  Area area = Area::kResident;
  std::uint64_t bytes = 0;   ///< that only this snapshot has: what its eviction gives back
  std::int64_t last_use = 0;  ///< seconds since 1970, for people; the order is the list's
  bool operator==(const Holding&) const = default;
};

/// The snapshots that have bytes in the store, in the order of their last use, each in its area.
///
/// A value; not thread-safe. Every operation but bytes-of-an-area lookups is O(1); nothing is
/// linear in the number of snapshots but a walk.
class Holdings {
 public:
  /// The most recently used one now; added if it is new. The area only goes up.
  void use(const Digest& snapshot, Area area, std::int64_t now);
  void set_bytes(const Digest& snapshot, std::uint64_t bytes);  ///< no effect if it is not held
  void drop(const Digest& snapshot);

  [[nodiscard]] const Holding* find(const Digest& snapshot) const;
  [[nodiscard]] std::uint64_t bytes(Area area) const noexcept;
  [[nodiscard]] std::size_t count() const noexcept { return places_.size(); }
  /// Least recently used first, until `visit` returns false.
  using Visit = std::function<bool(const Holding&)>;
  void walk(Area area, const Visit& visit) const;

 private:
  using Order = std::list<Holding>;
  [[nodiscard]] Order& order(Area area) noexcept;

  Order probation_;
  Order residents_;
  std::uint64_t probation_bytes_ = 0;
  std::uint64_t resident_bytes_ = 0;
  std::unordered_map<Digest, Order::iterator> places_;
};

}  // namespace weightfs::policy
