// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"

namespace weightfs::cli {

/// Blocks SIGTERM, SIGINT and SIGHUP for this thread and all that it starts, ignores SIGPIPE, and
/// returns a descriptor (signalfd(2)) that is readable once one of the first two came. Call before
/// the first thread starts.
[[nodiscard]] Fd block_stop_signals();

}  // namespace weightfs::cli
