// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "cache/stock.hpp"

#include <cstdint>
#include <filesystem>
#include <unordered_map>
#include <vector>

namespace weightfs::cache {

/// What the store would have, were there a cache: what it has now, and what would have been kept
/// and evicted since. In memory; of the store it reads names and sizes, once, and writes nothing. A
/// file that would be kept counts as complete from its first byte on.
class ShadowStock final : public Stock {
 public:
  /// Of stores that need not exist, and need not be open. Linear in their blobs.
  explicit ShadowStock(const std::vector<std::filesystem::path>& store_directories);

  void add(const fetch::Target& file);

  [[nodiscard]] Presence presence(const fetch::Target& file) const override;
  [[nodiscard]] bool in_use(const fetch::Target&) const override { return false; }
  [[nodiscard]] bool set_aside(const fetch::Target&) const override { return false; }
  [[nodiscard]] bool readable() const override { return true; }
  /// One, as if all disks were one.
  [[nodiscard]] std::vector<store::VolumeStatus> volumes() const override;
  std::uint64_t remove(const fetch::Target& file) override;
  std::uint64_t remove_but(const std::unordered_set<Digest>& known) override;

 private:
  struct Content {
    std::unordered_map<Digest, std::uint64_t> sizes;  ///< by content key
    std::uint64_t bytes = 0;
  };

  const std::vector<std::filesystem::path> directories_;
  std::uint64_t kept_bytes_ = 0;  ///< of the real stores, when this one began
  Synchronized<Content> content_;
};

}  // namespace weightfs::cache
