// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

namespace weightfs::keeper {

/// A daemon that ends with this (EX_CONFIG of sysexits.h) would fail the same way again: it is not
/// started again, the keeper unmounts and ends with the same status. So it is with 0. After every
/// other end the daemon is started again.
inline constexpr int kDaemonFatal = 78;

/// The keeper's own: the daemon does not come up, or the connection was aborted under it.
inline constexpr int kKeeperGaveUp = 1;

}  // namespace weightfs::keeper
