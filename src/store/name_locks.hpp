// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "digest/digest.hpp"

#include <condition_variable>
#include <unordered_set>

namespace weightfs::store {

/// Makes those who change what stands under one blob's name (publish, remove, quarantine, forget)
/// take turns, so that file and index row cannot part ways. Readers do not take it. A turn spans
/// disk writes; that is why it is per name and no mutex. Thread-safe. Must outlive its turns.
class NameLocks {
 public:
  class Turn {
   public:
    Turn(NameLocks& locks, const Digest& digest);
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn();

   private:
    NameLocks& locks_;
    const Digest digest_;
  };

 private:
  Synchronized<std::unordered_set<Digest>> taken_;
  std::condition_variable_any given_back_;
};

}  // namespace weightfs::store
