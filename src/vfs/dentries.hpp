// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "digest/digest.hpp"
#include "vfs/invalidator.hpp"
#include "vfs/node_id.hpp"

#include <cstddef>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

namespace weightfs::vfs {

/// Which names the kernel was told for which content, so that all of them can be invalidated when
/// it completes or goes. Bounded: beyond the limit nothing is remembered, and those names are found
/// out by their short lifetime or by the check at OPEN. Empty after a restart, for the same reason.
///
/// Thread-safe. The Invalidator must outlive it.
class Dentries {
 public:
  static constexpr std::size_t kLimit = 1 << 20;

  explicit Dentries(Invalidator& invalidator) : invalidator_(invalidator) {}

  void remember(const Digest& content_key, NodeId parent, const std::string& name);
  /// Invalidates and forgets every name that was given for this content.
  void invalidate(const Digest& content_key);

 private:
  using Name = std::pair<std::uint64_t, std::string>;
  struct State {
    std::unordered_map<Digest, std::set<Name>> names;
    std::size_t count = 0;
  };

  Invalidator& invalidator_;
  Synchronized<State> state_;
};

}  // namespace weightfs::vfs
