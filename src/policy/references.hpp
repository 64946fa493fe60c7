// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "digest/digest.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace weightfs::policy {

enum class Admission { kAlways, kSecondReference, kNever };

/// Who has referred to which snapshot, as far as admission needs it: the first consumer, and
/// whether there was another. A reference is one consumer's use of a snapshot: ten shards that one
/// pod opens are one reference, and so is that pod after a restart.
///
/// Bounded: what was not referred to for the longest goes first. Moved, never copied. Not
/// thread-safe. The same sequence of calls gives the same answers, on a node and in a replay, and
/// before and after records() were written down and restored.
class References {
 public:
  static constexpr std::size_t kRemembered = 65'536;

  /// Remembers `most` snapshots, one at least.
  explicit References(std::size_t most = kRemembered) : most_(std::max<std::size_t>(most, 1)) {}
  References(const References&) = delete;  // places_ points into the list
  References& operator=(const References&) = delete;
  References(References&&) noexcept = default;
  References& operator=(References&&) noexcept = default;
  ~References() = default;

  /// kFirst: nobody had referred to it. kAgain: only this consumer had. kSecond: it is this
  /// reference that proves it. kProven: it was proven before.
  enum class Seen { kFirst, kAgain, kSecond, kProven };
  Seen refer(const Digest& snapshot, std::string_view consumer);
  /// A person or a scheduler has decided (warm, pin, lease). Counts as a use for what is forgotten
  /// first.
  void prove(const Digest& snapshot);
  [[nodiscard]] bool proven(const Digest& snapshot) const;
  void forget(const Digest& snapshot);

  struct Record {
    Digest snapshot;
    std::uint64_t first_consumer = 0;  ///< a hash of its name, the same in every process
    bool proven = false;
    bool operator==(const Record&) const = default;
  };
  /// What is known of it; nothing, where that is forgotten.
  [[nodiscard]] Record record(const Digest& snapshot) const;
  /// Oldest first, to be written down and given back to restore() in that order.
  [[nodiscard]] std::vector<Record> records() const { return {order_.begin(), order_.end()}; }
  /// The most recent one now; replaces what is known of the snapshot.
  void restore(const Record& record);

 private:
  using Order = std::list<Record>;
  /// Makes the snapshot's record the most recent one, if it has any.
  [[nodiscard]] Record* touch(const Digest& snapshot);
  void add(const Record& record);

  std::size_t most_;
  Order order_;  ///< least recently referred to first
  std::unordered_map<Digest, Order::iterator> places_;
};

}  // namespace weightfs::policy
