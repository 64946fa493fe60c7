// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"

#include <cstdint>

namespace weightfs::store {

/// What tells one version of a file from another without reading it. A blob is never modified, so
/// any difference from what the index recorded means that somebody else touched the file. A value.
struct Identity {
  std::uint64_t size = 0;     ///< bytes
  std::int64_t mtime_ns = 0;  ///< nanoseconds since 1970
  std::uint64_t inode = 0;

  bool operator==(const Identity&) const = default;
};

/// Throws Error: kIo; kInvalid for anything that is not a regular file.
[[nodiscard]] Identity identity_of(const Fd& fd);

}  // namespace weightfs::store
