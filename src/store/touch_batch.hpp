// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "base/synchronized.hpp"
#include "digest/digest.hpp"

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weightfs::store {

/// Uses of blobs that wait to be written to the index. Bounded. Thread-safe. `clock` must outlive
/// it.
class TouchBatch {
 public:
  using Uses = std::vector<std::pair<Digest, std::int64_t>>;

  explicit TouchBatch(const Clock& clock);

  /// Notes a use at this time (seconds since 1970). Returns the whole batch when it is full or old:
  /// the caller writes it. Else nothing.
  [[nodiscard]] Uses add(const Digest& digest, std::int64_t seconds);
  [[nodiscard]] Uses take();

 private:
  struct Pending {
    std::unordered_map<Digest, std::int64_t> uses;
    Clock::TimePoint since;
  };
  static Uses drain(Pending& pending, Clock::TimePoint now);

  const Clock& clock_;
  Synchronized<Pending> pending_;
};

}  // namespace weightfs::store
