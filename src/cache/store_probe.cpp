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
                       telemetry::Events events, Log log)
    : store_(store),
      cache_(cache),
      on_return_(std::move(on_return)),
      events_(events),
      log_(std::move(log)),
      thread_(start_thread("store-probe", [this](const std::stop_token& stop) {
        while (pause(stop, kInterval)) look();
      })) {
}

void StoreProbe::look() {
  if (cache_.mode() != Mode::kProd) return;
  try {
    tell();
    const bool returned = store_.probe();
    tell();
    if (returned) on_return_();
  } catch (const Error& error) {
    log_.error("cannot look after the store: {}", error.what());
  }
}

/// A volume is set aside for some seconds at least: no look misses one.
void StoreProbe::tell() {
  for (const store::VolumeStatus& volume : store_.volumes()) {
    const bool usable = volume.state == store::VolumeState::kUsable;
    const auto told = told_.find(volume.directory);
    const bool was_usable = told == told_.end() || told->second == store::VolumeState::kUsable;
    told_.insert_or_assign(volume.directory, volume.state);
    if (usable == was_usable) continue;
    events_.put({.kind = telemetry::EventKind::kDisk,
                 .action = usable ? "back" : "set_aside",
                 .path = volume.directory.string(),
                 .bytes = volume.usage.bytes,
                 .reason = volume.error});
  }
}

}  // namespace weightfs::cache
