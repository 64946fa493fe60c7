// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"

#include <cstddef>
#include <string>
#include <unordered_set>
#include <utility>

namespace weightfs::cache {

/// Tells what happens for the first time: what counts once per consumer and file. Bounded: when it
/// is full, it forgets all. Thread-safe.
class FirstTimes {
 public:
  static constexpr std::size_t kRemembered = 256 << 10;

  [[nodiscard]] bool first(std::string what) {
    return seen_.with([&](auto& seen) {
      if (seen.size() >= kRemembered) seen.clear();
      return seen.insert(std::move(what)).second;
    });
  }

 private:
  Synchronized<std::unordered_set<std::string>> seen_;
};

}  // namespace weightfs::cache
