// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/error.hpp"
#include "control/service.hpp"
#include "snapshot/reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace weightfs::control {

namespace {

api::Event shown(const telemetry::Event& event) {
  const auto time =
      std::chrono::floor<std::chrono::milliseconds>(event.time.time_since_epoch()).count();
  return {.seq = event.sequence,
          .time = static_cast<double>(time) / 1000,
          .event = telemetry::name(event.kind),
          .action = event.action,
          .name = event.name,
          .snapshot = event.snapshot,
          .path = event.path,
          .source = event.source,
          .consumer = event.consumer,
          .lease = event.lease,
          .bytes = event.bytes,
          .reason = event.reason,
          .hit_rate = event.hit_rate,
          .saved_bytes = event.saved_bytes};
}

}  // namespace

api::EventPage Service::events(const api::EventQuery& query) {
  if (parts_.event_log == nullptr) throw Error(Errc::kUnsupported, "events are not recorded");
  const telemetry::EventLog::Page found =
      parts_.event_log->read({.since = query.since,
                              .limit = query.limit,
                              .wait = std::chrono::seconds(query.wait_seconds)});
  api::EventPage page{.events = {}, .last = found.last, .missed = found.missed};
  page.events.reserve(found.events.size());
  for (const auto& event : found.events) page.events.push_back(shown(*event));
  return page;
}

void Service::end_waiting() noexcept {
  if (parts_.event_log != nullptr) parts_.event_log->end_waiting();
}

api::EventsStatus Service::events_status() const {
  if (parts_.event_log == nullptr) return {};
  const telemetry::EventLogStatus status = parts_.event_log->status();
  return {.recorded = status.recorded, .dropped = status.dropped, .error = status.error};
}

void Service::put(telemetry::Event event) const {
  if (parts_.event_log != nullptr) parts_.event_log->put(std::move(event));
}

void Service::tell(telemetry::EventKind kind, const catalog::Model& model,
                   std::string reason) const {
  const snapshot::SnapshotPtr snapshot = parts_.catalog.snapshot(model.current);
  telemetry::Event event = snapshot
                               ? about(kind, *snapshot)
                               : telemetry::Event{.kind = kind,
                                                  .snapshot = model.current.short_hex(),
                                                  .source = snapshot::shown_source(model.source)};
  event.name = model.name;
  event.reason = std::move(reason);
  put(std::move(event));
}

void Service::tell_freed(telemetry::EventKind kind, const catalog::Model& model,
                         std::uint64_t bytes, std::string reason) const {
  put({.kind = kind,
       .name = model.name,
       .snapshot = model.current.short_hex(),
       .source = snapshot::shown_source(model.source),
       .bytes = bytes,
       .reason = std::move(reason)});
}

/// About a file that a name shows and that has this content; of `name`, unless that is empty.
telemetry::Event Service::about_content(const std::string& sha256, const std::string& name) const {
  constexpr auto kKind = telemetry::EventKind::kVerification;
  for (const catalog::Model& model : parts_.catalog.list()) {
    if (!name.empty() && model.name != name) continue;
    const auto snapshot = parts_.catalog.snapshot(model.current);
    if (!snapshot) continue;
    for (std::size_t i = 0; i < snapshot->files().size(); ++i) {
      const auto& digest = snapshot->files()[i].sha256;
      if (!digest || digest->hex() != sha256) continue;
      telemetry::Event event = about(kKind, *snapshot, i);
      event.name = model.name;
      return event;
    }
  }
  return {.kind = kKind, .name = name};
}

/// One event for each that is damaged, and one for all that are not: there may be a million.
void Service::tell_verified(const api::VerifyResult& result, const std::string& name) const {
  for (const api::CorruptBlob& blob : result.corrupt) {
    telemetry::Event event = about_content(blob.sha256, name);
    event.action = "mismatch";
    event.reason = fmt::format("the blob {} was damaged on disk; it is in quarantine",
                               blob.sha256.substr(0, 12));
    put(std::move(event));
  }
  telemetry::Event event{.kind = telemetry::EventKind::kVerification, .name = name};
  if (const auto model = parts_.catalog.find(name)) event.snapshot = model->current.short_hex();
  event.action = "intact";
  event.bytes = result.bytes;
  event.reason =
      fmt::format("asked for: {} blobs, but for {}", result.blobs, result.corrupt.size());
  put(std::move(event));
}

}  // namespace weightfs::control
