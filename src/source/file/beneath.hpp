// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"

#include <string>

namespace weightfs::source {

/// openat2(2): `path` from the directory `root` on, through links as long as they stay below it
/// (RESOLVE_BENEATH); O_CLOEXEC added. Closed, with errno, where it fails: EXDEV for what leads out
/// of it, ENOSYS before Linux 5.6.
[[nodiscard]] Fd open_beneath(const Fd& root, const std::string& path, int flags);

}  // namespace weightfs::source
