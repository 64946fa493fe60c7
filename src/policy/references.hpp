// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "digest/digest.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace weightfs::policy {

enum class Admission { kAlways, kSecondReference, kNever };

/// Who has referred to which snapshot, as far as admission needs it: the first consumer, and
/// whether there was another. A reference is one consumer's use of a snapshot: ten shards that one
/// pod opens are one reference, and so is that pod after a restart.
///
/// Bounded: what was not referred to for the longest goes first. A value; not thread-safe. The same
/// sequence of calls gives the same answers, on a node and in a replay.
class References {
 public:
  static constexpr std::size_t kRemembered = 65'536;

  explicit References(std::size_t most = kRemembered) : most_(most) {}

  /// kFirst: nobody had referred to it. kAgain: only this consumer had. kSecond: it is this
  /// reference that proves it. kProven: it was proven before.
  enum class Seen { kFirst, kAgain, kSecond, kProven };
  Seen refer(const Digest& snapshot, std::string_view consumer);
  /// A person or a scheduler has decided (warm, pin, lease).
  void prove(const Digest& snapshot);
  [[nodiscard]] bool proven(const Digest& snapshot) const;
  void forget(const Digest& snapshot);

  struct Record {
    Digest snapshot;
    std::uint64_t first_consumer = 0;  ///< a hash of its name
    bool proven = false;
    bool operator==(const Record&) const = default;
  };
  /// Oldest first, to be written down and given back to restore() in that order.
  [[nodiscard]] std::list<Record> records() const { return order_; }
  void restore(const Record& record);

 private:
  using Order = std::list<Record>;
  Order::iterator touch(const Digest& snapshot);

  std::size_t most_;
  Order order_;  ///< least recently referred to first
  std::unordered_map<Digest, Order::iterator> places_;
};

}  // namespace weightfs::policy
