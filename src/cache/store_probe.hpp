// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/log.hpp"
#include "store/store.hpp"
#include "telemetry/events.hpp"

#include "cache/cache.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <thread>

namespace weightfs::cache {

/// Looks after the volumes of the store that cannot be used: Store::probe() once a second; and says
/// which were set aside, and which are back. One
/// thread ("store-probe"), until it is destroyed; of its own, for a disk that has failed may let it
/// wait for minutes. Not in a mode that leaves the store alone. What is given must outlive it.
class StoreProbe {
 public:
  /// `on_return` is called on that thread after a volume has come back.
  StoreProbe(store::Store& store, const Cache& cache, std::function<void()> on_return,
             telemetry::Events events, Log log);
  StoreProbe(const StoreProbe&) = delete;
  StoreProbe& operator=(const StoreProbe&) = delete;

 private:
  void look();
  void tell();

  store::Store& store_;
  const Cache& cache_;
  const std::function<void()> on_return_;
  const telemetry::Events events_;
  const Log log_;
  std::map<std::filesystem::path, store::VolumeState> told_;  ///< of the thread
  std::jthread thread_;
};

}  // namespace weightfs::cache
