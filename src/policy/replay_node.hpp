// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "policy/holdings.hpp"
#include "policy/references.hpp"
#include "policy/room.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

namespace weightfs::policy {

/// One reference, as a simulated node meets it.
struct ReplayUse {
  std::int64_t place = 0;  ///< in the trace
  std::uint32_t artifact = 0;
  std::string_view consumer;
  std::uint64_t bytes = 0;
};

/// The cache of one node in a replay. Confined to one thread.
class ReplayNode {
 public:
  enum class Outcome { kHit, kMiss };

  ReplayNode() = default;
  ReplayNode(const ReplayNode&) = delete;
  ReplayNode& operator=(const ReplayNode&) = delete;
  virtual ~ReplayNode() = default;

  virtual Outcome refer(const ReplayUse& use) = 0;
  [[nodiscard]] virtual bool holds(std::uint32_t artifact) const = 0;
  [[nodiscard]] virtual std::uint64_t free() const = 0;
  [[nodiscard]] std::uint64_t evictions() const noexcept { return evictions_; }

 protected:
  std::uint64_t evictions_ = 0;
};

/// What a node that decides as the daemon does goes by.
struct CacheRules {
  std::uint64_t capacity = 0;
  std::uint64_t probation = 0;
  Admission admission = Admission::kAlways;
  /// What a hit does: kFifo leaves the order as it was.
  enum class Order { kLru, kFifo } order = Order::kLru;
  /// When an artifact whose last use stands at this place of the trace is needed next, as seen from
  /// the other place; none: nobody knows.
  using NextUseAt = std::function<std::optional<std::int64_t>(std::int64_t last, std::int64_t now)>;
  NextUseAt next_use;
};

/// The daemon's own References, Holdings and make_room. Time is the place in the trace.
class CacheNode final : public ReplayNode {
 public:
  explicit CacheNode(CacheRules rules) : rules_(std::move(rules)) {}

  Outcome refer(const ReplayUse& use) override;
  [[nodiscard]] bool holds(std::uint32_t artifact) const override;
  [[nodiscard]] std::uint64_t free() const override { return rules_.capacity - used(); }

 private:
  [[nodiscard]] std::uint64_t used() const noexcept;
  [[nodiscard]] Area area_for(const Digest& snapshot, std::string_view consumer);
  /// Whether there is room now.
  bool make_room_for(const Claim& claim, std::int64_t now);

  const CacheRules rules_;
  References references_;
  Holdings holdings_;
};

}  // namespace weightfs::policy
