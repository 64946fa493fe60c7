// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cache/store_probe.hpp"

#include "base/error.hpp"
#include "base/thread.hpp"

#include <chrono>
#include <utility>

namespace weightfs::cache {

namespace {

constexpr std::chrono::seconds kInterval{1};

}  // namespace

StoreProbe::StoreProbe(store::Store& store, const Cache& cache, std::function<void()> on_return,
                       Log log)
    : thread_(start_thread("store-probe", [&store, &cache, returned = std::move(on_return),
                                           log = std::move(log)](auto stop) {
        while (pause(stop, kInterval)) {
          try {
            if (cache.mode() == Mode::kProd && store.probe()) returned();
          } catch (const Error& error) {
            log.error("cannot look after the store: {}", error.what());
          }
        }
      })) {
}

}  // namespace weightfs::cache
