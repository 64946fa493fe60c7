// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cli/process_user.hpp"
#include "cli/settings.hpp"

namespace weightfs::cli {

/// What root does for a daemon that will have no privilege: makes the directories of the
/// store and the state, and gives them to `user` (see give_directory for what is refused, of what
/// is in use after a moment of patience).
void prepare_directories(const Settings& settings, const ProcessUser& user);

}  // namespace weightfs::cli
