// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"
#include "digest/digest.hpp"

#include <cstdint>
#include <memory>

namespace weightfs::store {

/// A verified blob that somebody has open. The descriptor stays readable until the last copy goes,
/// whatever is evicted meanwhile, and its bytes stay accounted for until then. Copyable,
/// thread-safe (reads are positioned).
struct Blob {
  Digest digest;
  std::uint64_t size = 0;
  std::shared_ptr<const Fd> fd;  ///< O_RDONLY
};

}  // namespace weightfs::store
