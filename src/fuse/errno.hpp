// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/error.hpp"

namespace weightfs::fuse {

/// What the caller of a system call was doing: the same failure means different things before and
/// after it has a descriptor.
enum class Call { kPath, kRead };

/// The one place where an Errc becomes an errno (the table in README).
[[nodiscard]] int to_errno(Errc code, Call call) noexcept;

}  // namespace weightfs::fuse
