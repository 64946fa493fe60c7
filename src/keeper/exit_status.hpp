// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

namespace weightfs::keeper {

/// A daemon that ends with 0 was told to, or its mount is gone: it is not started again, the keeper
/// unmounts. One that ends with kDaemonFatal (EX_CONFIG of sysexits.h) would fail the same way
/// again: where none has come up on this mount yet, the keeper unmounts, and Keeper::run() returns
/// the same status (the commands end with 1). After every other end, and once one has come up, it
/// is started again (RestartPolicy says how often).
inline constexpr int kDaemonFatal = 78;

/// The keeper's own: the daemon does not come up, or the connection was aborted under it.
inline constexpr int kKeeperGaveUp = 1;

}  // namespace weightfs::keeper
