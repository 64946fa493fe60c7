// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "snapshot/snapshot.hpp"

#include <filesystem>
#include <vector>

namespace weightfs::catalog {

using snapshot::LearnedDigest;

/// `snapshots/<key>.learned` (FORMAT.md): one line per digest. Not synced: what a power cut takes
/// is learned again with the next fill of that file. Throws Error(kNoSpace, kIo).
void append_learned(const std::filesystem::path& file, const LearnedDigest& learned);

/// An absent or unreadable file is empty; a torn or foreign line is passed over.
[[nodiscard]] std::vector<LearnedDigest> read_learned(const std::filesystem::path& file);

}  // namespace weightfs::catalog
