// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/log.hpp"
#include "store/store.hpp"

#include "cache/cache.hpp"

#include <functional>
#include <thread>

namespace weightfs::cache {

/// Looks after the volumes of the store that cannot be used: Store::probe() once a second. One
/// thread ("store-probe"), until it is destroyed; of its own, for a disk that has failed may let it
/// wait for minutes. Not in a mode that leaves the store alone. What is given must outlive it.
class StoreProbe {
 public:
  /// `on_return` is called on that thread after a volume has come back.
  StoreProbe(store::Store& store, const Cache& cache, std::function<void()> on_return, Log log);

 private:
  std::jthread thread_;
};

}  // namespace weightfs::cache
