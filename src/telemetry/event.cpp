// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "telemetry/event.hpp"

#include "snapshot/reference.hpp"

#include <array>
#include <utility>

namespace weightfs::telemetry {

namespace {

constexpr std::array<std::pair<EventKind, const char*>, 23> kNames{{
    {EventKind::kStart, "start"},
    {EventKind::kStop, "stop"},
    {EventKind::kReference, "reference"},
    {EventKind::kHit, "hit"},
    {EventKind::kMiss, "miss"},
    {EventKind::kFill, "fill"},
    {EventKind::kVerification, "verification"},
    {EventKind::kAdmission, "admission"},
    {EventKind::kEviction, "eviction"},
    {EventKind::kRefusal, "refusal"},
    {EventKind::kShadow, "shadow"},
    {EventKind::kAdd, "add"},
    {EventKind::kRemove, "remove"},
    {EventKind::kUpdate, "update"},
    {EventKind::kFlip, "flip"},
    {EventKind::kConfirm, "confirm"},
    {EventKind::kRollback, "rollback"},
    {EventKind::kPin, "pin"},
    {EventKind::kUnpin, "unpin"},
    {EventKind::kLease, "lease"},
    {EventKind::kDisk, "disk"},
    {EventKind::kMode, "mode"},
    {EventKind::kDropped, "dropped"},
}};

}  // namespace

const char* name(EventKind kind) noexcept {
  for (const auto& [known, text] : kNames) {
    if (known == kind) return text;
  }
  return "";
}

std::optional<EventKind> kind_of(std::string_view name) noexcept {
  for (const auto& [kind, text] : kNames) {
    if (text == name) return kind;
  }
  return std::nullopt;
}

Event about(EventKind kind, const snapshot::Snapshot& snapshot) {
  return {.kind = kind,
          .snapshot = snapshot.key().short_hex(),
          .source = snapshot::shown_source(snapshot.source()),
          .bytes = snapshot.bytes()};
}

Event about(EventKind kind, const snapshot::Snapshot& snapshot, std::size_t file_index) {
  Event event = about(kind, snapshot);
  const snapshot::File& file = snapshot.files()[file_index];
  event.path = file.path;
  event.bytes = file.size;
  return event;
}

}  // namespace weightfs::telemetry
