// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "digest/digest.hpp"

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace weightfs::source {

/// What was learned of files that the Hub has no sha256 of, by git's id of their content. Their
/// bytes are kept for a while, as whoever lists a repository reads it next; their digests for
/// longer, as most of a new revision's small files are those of the last. Bounded. Thread-safe.
class SmallFiles {
 public:
  using Content = std::shared_ptr<const std::string>;

  /// Keeps it, and returns the sha256 of `content`.
  Digest add(const std::string& blob, std::string content);
  [[nodiscard]] std::optional<Digest> digest(const std::string& blob) const;
  /// Null where it is not kept (any more).
  [[nodiscard]] Content content(const Digest& sha256) const;

 private:
  struct Kept {
    Digest sha256;
    Content content;
  };
  struct State {
    std::map<std::string, Digest> digests;
    std::list<Kept> contents;  ///< newest first
    std::uint64_t bytes = 0;
  };
  Synchronized<State> state_;
};

}  // namespace weightfs::source
