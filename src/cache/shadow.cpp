// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cache/shadow.hpp"

#include <fmt/format.h>

#include <utility>

namespace weightfs::cache {

namespace {

GovernorOptions leaving_no_trace(GovernorOptions options) {
  options.writing = UseLog::Writing::kNothing;
  return options;
}

}  // namespace

Shadow::Shadow(Parts parts, const std::vector<std::filesystem::path>& store_directories,
               GovernorOptions options, const Log& log)
    : events_(parts.events),
      stock_(store_directories),
      governor_({.stock = stock_,
                 .catalog = parts.catalog,
                 .open = parts.open,
                 .clock = parts.clock,
                 .events = telemetry::Events(*this)},
                leaving_no_trace(std::move(options)), log.named("shadow")) {
}

void Shadow::opened(const snapshot::SnapshotPtr& snapshot, std::size_t file_index,
                    const std::string& consumer) {
  governor_.used(snapshot, file_index, consumer);
  const fetch::Target file{.snapshot = snapshot, .file_index = file_index, .source = nullptr};
  if (stock_.presence(file) != Stock::Presence::kComplete) {
    ++misses_;
    return;
  }
  if (!counted_.first(fmt::format("{} {} {}", snapshot->key().hex(), file_index, consumer))) return;
  ++hits_;
  hit_bytes_ += file.file().size;
}

void Shadow::fetched(const fetch::Target& target) {
  if (stock_.presence(target) == Stock::Presence::kComplete) return;
  static_cast<void>(governor_.claim(target, [&] { stock_.add(target); }));
}

/// What the governor says of what it did, which is nothing.
void Shadow::put(telemetry::Event event) noexcept {
  using telemetry::EventKind;
  if (event.kind == EventKind::kAdmission) {
    event.reason = event.action + ", " + event.reason;
    event.action = "would_cache_artifact";
  } else if (event.kind == EventKind::kEviction) {
    event.action = "would_evict";
  } else if (event.kind == EventKind::kRefusal) {
    event.action = "would_refuse";
  } else {
    return;
  }
  event.kind = EventKind::kShadow;
  const ShadowCounts counted = counts();
  event.hit_rate = counted.hit_rate();
  event.saved_bytes = counted.hit_bytes;
  events_.put(std::move(event));
}

ShadowCounts Shadow::counts() const {
  return {.hits = hits_, .hit_bytes = hit_bytes_, .misses = misses_};
}

}  // namespace weightfs::cache
