// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cache/upkeep.hpp"

#include "base/error.hpp"
#include "base/thread.hpp"

#include <chrono>
#include <utility>

namespace weightfs::cache {

namespace {

constexpr std::chrono::seconds kInterval{1};

}  // namespace

Upkeep::Upkeep(Governor& governor, Log log)
    : thread_(start_thread("cache-upkeep", [&governor, log = std::move(log)](auto stop) {
        do {
          try {
            governor.keep_limits();
          } catch (const Error& error) {
            log.error("cannot make room in the store: {}", error.what());
          }
        } while (pause(stop, kInterval));
      })) {
}

}  // namespace weightfs::cache
