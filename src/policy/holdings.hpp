// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "digest/digest.hpp"

#include <cstdint>
#include <functional>
#include <list>
#include <unordered_map>

namespace weightfs::policy {

/// Where a snapshot's bytes count: on probation until a second reference, then resident.
enum class Area : std::uint8_t { kProbation, kResident };

struct Holding {
  Digest snapshot;
  Area area = Area::kResident;
  std::uint64_t bytes = 0;    ///< that only this snapshot has: what its eviction gives back
  std::int64_t last_use = 0;  ///< seconds since 1970, for people; the order is the list's
  bool operator==(const Holding&) const = default;
};

/// The snapshots that have bytes in the store, in the order of their last use, each in its area.
///
/// Moved, never copied. Not thread-safe. Every operation is O(1) but a walk, which is linear in
/// what it visits.
class Holdings {
 public:
  Holdings() = default;
  Holdings(const Holdings&) = delete;  // places_ points into the lists
  Holdings& operator=(const Holdings&) = delete;
  Holdings(Holdings&&) noexcept = default;
  Holdings& operator=(Holdings&&) noexcept = default;
  ~Holdings() = default;

  /// The most recently used one of its area now; added, without bytes, if it is new. The area only
  /// goes up.
  void use(const Digest& snapshot, Area area, std::int64_t now);
  void set_bytes(const Digest& snapshot, std::uint64_t bytes);  ///< no effect if it is not held
  void drop(const Digest& snapshot);

  /// Valid until the snapshot is dropped.
  [[nodiscard]] const Holding* find(const Digest& snapshot) const;
  [[nodiscard]] std::uint64_t bytes(Area area) const noexcept;
  [[nodiscard]] std::size_t count() const noexcept { return places_.size(); }
  /// Least recently used first, until `visit` returns false. It must not change the holdings.
  using Visit = std::function<bool(const Holding&)>;
  void walk(Area area, const Visit& visit) const;

 private:
  using Order = std::list<Holding>;
  [[nodiscard]] Order& order(Area area) noexcept;
  [[nodiscard]] const Order& order(Area area) const noexcept;
  [[nodiscard]] std::uint64_t& total(Area area) noexcept;

  Order probation_;
  Order residents_;
  std::uint64_t probation_bytes_ = 0;
  std::uint64_t resident_bytes_ = 0;
  std::unordered_map<Digest, Order::iterator> places_;
};

}  // namespace weightfs::policy
