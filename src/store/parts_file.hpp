// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "digest/digest.hpp"
#include "digest/sha256.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

namespace weightfs::store {

/// `<digest>.parts` (FORMAT.md): the midstates of a blob at each part boundary before its end, so
/// that any part can be checked alone. Whoever has the blob can compute it again: one that is
/// missing or damaged is no fault of the blob.
struct PartsFile {
  Digest digest;
  std::uint64_t size = 0;  ///< of the blob, bytes
  std::vector<Midstate> midstates;
};

/// Midstates that a blob of this size has: one per part boundary strictly before the end.
[[nodiscard]] std::size_t midstate_count(std::uint64_t size) noexcept;

/// nullopt where there is none, it is damaged or it cannot be read.
[[nodiscard]] std::optional<PartsFile> read_parts(const std::filesystem::path& path);
/// Writes and syncs the file, not its directory. Throws Error.
void write_parts(const std::filesystem::path& path, const Digest& digest, std::uint64_t size,
                 std::span<const Midstate> midstates);

}  // namespace weightfs::store
