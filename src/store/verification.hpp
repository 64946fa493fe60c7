// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "digest/sha256.hpp"
#include "store/blob.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

/// Reading blobs back to compare them with their names.
namespace weightfs::store {

/// Parts of kPartSize that a blob of this size has; the last may be short, and an empty blob has
/// one.
[[nodiscard]] std::size_t part_count(std::uint64_t size) noexcept;

/// Whether part `index` is what it was when the blob was published. `midstates` are those of the
/// whole blob (Volume::midstates). Reads through the page cache, which a check before the first use
/// thereby warms. Error: kIo; kInvalid for an index or midstates that do not fit the blob.
[[nodiscard]] bool check_part(const Blob& blob, std::size_t index,
                              std::span<const Midstate> midstates);

struct Rehash {
  bool intact = false;
  std::string fault;                ///< what is wrong and where, if it is not
  std::vector<Midstate> midstates;  ///< as computed now
};

/// Hashes the whole blob as it is on disk: past the page cache where the filesystem allows that, so
/// that the check sees the disk and does not push out what runtimes use. `expected` (may be empty)
/// are the recorded midstates; they tell where a difference is, the digest alone tells whether
/// there is one. A sector that cannot be read is a fault like any other. `progress` gets the bytes
/// since its last call and may throw to stop.
[[nodiscard]] Rehash rehash(const Blob& blob, std::span<const Midstate> expected,
                            const std::function<void(std::uint64_t)>& progress);

}  // namespace weightfs::store
