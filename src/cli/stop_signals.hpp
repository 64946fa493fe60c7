// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"

namespace weightfs::cli {

/// Blocks SIGTERM, SIGINT and SIGHUP for this thread and all that it starts, ignores SIGPIPE, and
/// returns a descriptor (signalfd(2)) that is readable once one of the first two came. Call before
/// the first thread starts.
[[nodiscard]] Fd block_stop_signals();

/// A descriptor that is readable once SIGHUP has come: the configuration is to be read again. After
/// block_stop_signals().
[[nodiscard]] Fd reload_signal();
/// Takes the SIGHUPs that have come off the descriptor. False if there was none.
bool take_reload_signal(int descriptor);

}  // namespace weightfs::cli
