// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "digest/digest.hpp"

#include <cstdint>
#include <string_view>

namespace weightfs::snapshot {

/// Whether git keeps only a pointer to a file with this content, and `blob` is the pointer's id
/// (git-lfs/docs/spec.md). So what the Hub says of a file tells whether it is in LFS, which decides
/// where its bytes are and how its cache calls them. Pure.
[[nodiscard]] bool is_lfs_pointer(std::string_view blob, const Digest& sha256, std::uint64_t size);

}  // namespace weightfs::snapshot
