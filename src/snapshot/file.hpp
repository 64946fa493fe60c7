// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "digest/digest.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weightfs::snapshot {

/// One file of a snapshot, as its source described it.
struct File {
  std::string
      path;  ///< relative, '/'-separated, valid in the sense of `check_path`; bytes, not text
  std::uint64_t size = 0;  ///< bytes
  bool executable = false;
  std::int64_t mtime = 0;        ///< seconds since 1970; 0 where the source does not know
  std::optional<Digest> sha256;  ///< of the content; nullopt until it is known
  /// What the source compares when it has no digest: ETag and length, or size, mtime and inode.
  /// Opaque outside its source; empty where sha256 came with the listing. Part of the snapshot's
  /// key.
  std::string validator;

  bool operator==(const File&) const = default;
};

inline constexpr std::size_t kMaxPathBytes = 4096;
inline constexpr std::size_t kMaxNameBytes = 255;
/// Components of a path. Each file may cost that many directories.
inline constexpr std::size_t kMaxDepth = 128;
/// The largest size that off_t, and so every system call, can hold.
inline constexpr std::uint64_t kMaxFileSize = (1ULL << 63) - 1;

/// Throws Error(kInvalid) naming the path unless it is relative, without empty, "." or ".."
/// components, without NUL, and within the limits above. Bytes that are not UTF-8 are allowed.
void check_path(std::string_view path);

}  // namespace weightfs::snapshot
