// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "digest/digest.hpp"

#include <cstdint>
#include <filesystem>
#include <vector>

namespace weightfs::store {

struct ListedBlob {
  Digest digest;
  std::uint64_t size = 0;  ///< bytes
};

/// The blobs of a store that need not be open, by their files alone: for whoever must not write to
/// it. What cannot be read is left out; a directory that does not exist has none. One that is being
/// changed meanwhile gives what was seen.
[[nodiscard]] std::vector<ListedBlob> list_blobs(const std::filesystem::path& store_directory);

}  // namespace weightfs::store
