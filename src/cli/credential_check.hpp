// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cli/outside_mount.hpp"
#include "cli/settings.hpp"

namespace weightfs::cli {

/// Reads the file of credentials as the daemon will, and nothing of what it names. UsageError where
/// it cannot be used, or names what is inside a mount point of `outside`. What this process may not
/// read, as the daemon may, is left to that.
void check_credentials(const Settings& settings, const OutsideMount& outside);

}  // namespace weightfs::cli
