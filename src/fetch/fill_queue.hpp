// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "fetch/fill_host.hpp"

#include <cstddef>
#include <deque>
#include <unordered_set>

namespace weightfs::fetch {

/// Fills that something is to be done for, each at most once. Bounded by the number of fills. Not
/// thread-safe.
class FillQueue {
 public:
  void push(const BlobFillPtr& fill);
  /// First come, first served. The queue must not be empty.
  [[nodiscard]] BlobFillPtr pop();
  /// The one that comes first by its Precedence as it is now; of several, the one that came first.
  /// Linear. The queue must not be empty.
  [[nodiscard]] BlobFillPtr pop_preceding();
  [[nodiscard]] bool empty() const noexcept { return fills_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return fills_.size(); }

 private:
  [[nodiscard]] BlobFillPtr take(std::deque<BlobFillPtr>::iterator at);

  std::deque<BlobFillPtr> fills_;
  std::unordered_set<const BlobFill*> members_;
};

}  // namespace weightfs::fetch
