// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "digest/digest.hpp"
#include "vfs/session_log.hpp"

#include <cstdint>
#include <unordered_map>

namespace weightfs::vfs {

/// How often the bytes of a content key turned out to be wrong in this session. Each time, the
/// pages that the kernel may still hold are poisoned, so every file with that content gets node ids
/// that were never used before.
///
/// A file whose digest is learned changes its content key in the middle of the session. Its
/// incarnation is therefore the sum over both of its keys: it never goes down.
///
/// Thread-safe. The SessionLog must outlive it.
class Incarnations {
 public:
  explicit Incarnations(SessionLog& log);

  /// `keys` are the content keys that the file has or had.
  template <class... Keys>
  [[nodiscard]] std::uint32_t sum(const Keys&... keys) const {
    return counts_.with([&](const Counts& counts) { return (count(counts, keys) + ... + 0U); });
  }
  /// Its bytes were wrong once more. Error(kNoSpace) where the session log is full: then it counts
  /// until the daemon ends.
  void retire(const Digest& content_key);

 private:
  using Counts = std::unordered_map<Digest, std::uint32_t>;
  static std::uint32_t count(const Counts& counts, const Digest& key);

  SessionLog& log_;
  Synchronized<Counts> counts_;
};

}  // namespace weightfs::vfs
