// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cli/process_user.hpp"

namespace weightfs::cli {

/// Becomes `user` for good: its group alone, no capability, no_new_privs. Call before the first
/// thread starts. Error(kPermission).
void drop_privileges(const ProcessUser& user);

}  // namespace weightfs::cli
