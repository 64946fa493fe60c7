// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "base/log.hpp"
#include "cache/cache.hpp"
#include "catalog/catalog.hpp"
#include "telemetry/events.hpp"

#include <chrono>
#include <thread>

namespace weightfs::cache {

/// What time brings: keeps the limits of the store where others fill its disk, and confirms
/// revisions that have stood for long enough. Looks once a second. One thread ("cache-upkeep"),
/// until it is destroyed. What is given, and the Cache's observer, must outlive it.
class Upkeep {
 public:
  struct Parts {
    Cache& cache;
    catalog::Catalog& catalog;
    const Clock& clock;
    telemetry::Events events = {};
  };
  /// `confirm_after`: 0 is never.
  Upkeep(Parts parts, std::chrono::seconds confirm_after, Log log);

 private:
  void keep_limits() const;
  void confirm() const;

  const Parts parts_;
  const std::chrono::seconds confirm_after_;
  const Log log_;
  std::jthread thread_;
};

}  // namespace weightfs::cache
