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

/// One event for each that is damaged, and one for all that are not: there may be a million.
void Service::tell_verified(const api::VerifyResult& result, const std::string& name) const {
  for (const api::CorruptBlob& blob : result.corrupt) {
    put({.kind = telemetry::EventKind::kVerification,
         .action = "mismatch",
         .name = name,
         .path = blob.files.empty() ? "" : blob.files.front(),
         .reason = fmt::format("the blob {} was damaged on disk; it is in quarantine",
                               blob.sha256.substr(0, 12))});
  }
  put({.kind = telemetry::EventKind::kVerification,
       .action = "intact",
       .name = name,
       .bytes = result.bytes,
       .reason =
           fmt::format("asked for: {} blobs, but for {}", result.blobs, result.corrupt.size())});
}

}  // namespace weightfs::control
