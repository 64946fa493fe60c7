// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "snapshot/file.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weightfs::snapshot {

inline constexpr std::string_view kManifestName = "weightfs.json";
inline constexpr std::string_view kChecksumsName = "SHA256SUMS";
/// 100,000 files with long paths fit many times; 200 MB of JSON does not.
inline constexpr std::uint64_t kMaxManifestBytes = 64ULL << 20;
inline constexpr std::size_t kMaxFiles = 1'000'000;

/// Reads `weightfs.json`: {"files":[{"path","size","sha256","mtime"?,"executable"?}]}. Unknown
/// members are ignored; anything malformed is Error(kInvalid) that names the entry and what is
/// wrong with it. A path that is not UTF-8 is written as {"path_base64": "..."} instead of "path".
/// Files come in the order of the document; duplicates and conflicts between them are found by
/// Snapshot.
[[nodiscard]] std::vector<File> parse_manifest(std::string_view json);
/// Error(kInvalid) for a file without sha256 or with a bad path. Validators are not written.
[[nodiscard]] std::string write_manifest(const std::vector<File>& files);

/// Reads the output of sha256sum (text or binary mode, with its backslash escapes, "./" stripped):
/// paths and digests; sizes are left 0 for the source to ask for.
[[nodiscard]] std::vector<File> parse_checksums(std::string_view text);

}  // namespace weightfs::snapshot
