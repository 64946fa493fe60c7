// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "fetch/read_pattern.hpp"
#include "snapshot/snapshot.hpp"

#include <algorithm>
#include <cstddef>
#include <unordered_map>

namespace weightfs::cache {

/// Which files of a snapshot make a use of it: weights are read by whoever uses a model, configs
/// and tokenizers by whoever looks at it. Where there are no weights, every file does. That is
/// found out once for each snapshot, not at each open of one of its files.
///
/// Not thread-safe.
class Weights {
 public:
  [[nodiscard]] bool is_use(const snapshot::Snapshot& snapshot, std::size_t file_index) {
    return fetch::holds_weights(snapshot.files()[file_index]) || has_none(snapshot);
  }
  /// Forgets the snapshots whose keys `gone` holds for.
  template <class Predicate>
  void forget_if(const Predicate& gone) {
    std::erase_if(none_, [&](const auto& one) { return gone(one.first); });
  }

 private:
  [[nodiscard]] bool has_none(const snapshot::Snapshot& snapshot) {
    const auto [found, added] = none_.try_emplace(snapshot.key());
    if (added) found->second = std::ranges::none_of(snapshot.files(), fetch::holds_weights);
    return found->second;
  }

  std::unordered_map<Digest, bool> none_;  ///< by snapshot: it has no weights
};

}  // namespace weightfs::cache
