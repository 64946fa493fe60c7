// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "store/partial_blob.hpp"
#include "store/partial_use.hpp"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace weightfs::store {

/// Which partial blobs are on disk, what they take, and which are being filled. Thread-safe. Must
/// outlive its claims.
class PartialTable {
 public:
  /// The right to work on one partial blob; ends with this object. Move-only.
  class Claim {
   public:
    Claim(PartialTable& table, const PartialKey& key);
    Claim(Claim&& other) noexcept;
    Claim& operator=(Claim&&) = delete;
    ~Claim();

    /// It is on disk, with this size.
    void keep(std::uint64_t size);
    /// It is not on disk any more.
    void forget();

   private:
    PartialTable* table_;
    PartialKey key_;
  };

  /// Found on disk.
  void add(const PartialKey& key, std::uint64_t size);
  /// Error(kBusy) while another claim of this key lives.
  [[nodiscard]] Claim claim(const PartialKey& key) { return {*this, key}; }
  [[nodiscard]] PartialUse use(const PartialKey& key) const;
  /// All that are on disk and that nobody is working on.
  [[nodiscard]] std::vector<PartialKey> all_idle() const;
  /// What all of them take, bytes.
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  struct Entry {
    std::uint64_t size = 0;
    bool on_disk = false;
    bool claimed = false;
  };
  struct Table {
    std::unordered_map<PartialKey, Entry> entries;
    std::uint64_t bytes = 0;
  };
  static void set(Table& table, Entry& entry, bool on_disk, std::uint64_t size);

  Synchronized<Table> table_;
};

}  // namespace weightfs::store
