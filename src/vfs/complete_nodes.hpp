// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "digest/digest.hpp"
#include "vfs/node_id.hpp"

#include <cstddef>
#include <unordered_map>
#include <vector>

namespace weightfs::vfs {

/// The nodes whose attributes the kernel was given for ever, by blob, so that it can be told when
/// the blob goes. Bounded: what is beyond the limit, or was given out by an earlier daemon, shows
/// old attributes until it is opened.
///
/// Thread-safe.
class CompleteNodes {
 public:
  static constexpr std::size_t kLimit = 1 << 20;

  void remember(const Digest& digest, NodeId node);
  /// Forgets and returns the nodes of this blob.
  [[nodiscard]] std::vector<NodeId> take(const Digest& digest);

 private:
  struct State {
    std::unordered_map<Digest, std::vector<NodeId>> nodes;  ///< few per blob
    std::size_t count = 0;
  };
  Synchronized<State> state_;
};

}  // namespace weightfs::vfs
