// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"
#include "digest/sha256.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weightfs::fetch {

/// The hash of one file, front to back, as far as its bytes are there. Reads them back from the
/// file: they were written a moment ago and are in the page cache. Leaves the midstate at each
/// whole part behind (`.parts`).
///
/// Confined to one thread at a time.
class HashFrontier {
 public:
  explicit HashFrontier(std::uint64_t size) noexcept : size_(size) {}

  /// Hashes on to `end`, which must not lie behind a byte that is missing. `buffer` is scratch
  /// space. Throws Error(kIo).
  void advance(const Fd& data, std::uint64_t end, std::span<std::byte> buffer);

  [[nodiscard]] std::uint64_t position() const noexcept { return hash_.length(); }
  [[nodiscard]] Digest digest() const { return hash_.digest(); }
  /// One for each multiple of store::kPartSize passed before the end of the file.
  [[nodiscard]] const std::vector<Midstate>& midstates() const noexcept { return midstates_; }

 private:
  std::uint64_t size_;
  Sha256 hash_;
  std::vector<Midstate> midstates_;
};

}  // namespace weightfs::fetch
