// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cli/settings.hpp"
#include "store/store.hpp"

namespace weightfs::cli {

/// What the store of these settings is opened with.
[[nodiscard]] store::StoreOptions store_options(const Settings& settings);

/// Opens the volumes of a daemon's store: a daemon that is about to end may have them for a moment
/// longer. `mount` tells whether readers wait already. Then a disk that has failed, or was made
/// read-only, must not make them wait for a person: the store goes without that volume, what cannot
/// be kept streams from its source, and Store::probe() opens it when its disk is back.
enum class Mount { kNew, kTakenOver };
/// Error as of Store::open_volumes.
void open_volumes(store::Store& store, const Settings& settings, Mount mount);

}  // namespace weightfs::cli
