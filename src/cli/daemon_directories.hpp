// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cli/process_user.hpp"
#include "cli/settings.hpp"

namespace weightfs::cli {

/// What root does for a daemon that will have no privilege: makes the store, the state and the
/// folder of the control socket, and gives them to `user` (see give_directory for what is refused).
/// A folder for the socket that exists already is left as it is.
void prepare_directories(const Settings& settings, const ProcessUser& user);

}  // namespace weightfs::cli
