// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/synchronized.hpp"
#include "digest/digest.hpp"

#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>

namespace weightfs::store {

struct QuarantineLimits {
  std::size_t files = 16;
  std::uint64_t bytes = 16ULL << 30;
  unsigned share = 16;  ///< ... and no more than one of so many parts of the filesystem
};

/// Files that were not what their name says, kept for a person to look at:
/// `quarantine/<when>.<nnn>-<name>` with a note beside it. Bounded by count and bytes, the oldest
/// go first; a file larger than the whole room leaves only its note. Thread-safe.
class Quarantine {
 public:
  /// Takes stock of what is there. `clock` must outlive it. Throws Error.
  Quarantine(std::filesystem::path directory, QuarantineLimits limits, const Clock& clock, Log log);

  /// Moves `file` here. Where that fails the file is removed instead: what is bad must not stay
  /// where it was. Throws Error only if that fails, too.
  void take(const std::filesystem::path& file, const Digest& name, const std::string& reason);

  [[nodiscard]] std::uint64_t files() const;

 private:
  struct Entry {
    std::string name;
    std::uint64_t size = 0;
  };
  /// Oldest first. An entry whose data was not kept has size 0.
  using Entries = std::deque<Entry>;

  [[nodiscard]] std::string new_name(const Digest& digest) const;
  void remove(const Entry& entry) const;

  const std::filesystem::path directory_;
  const QuarantineLimits limits_;
  const Clock& clock_;
  const Log log_;
  Synchronized<Entries> entries_;
};

}  // namespace weightfs::store
