// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cache/decision_events.hpp"

#include "base/quantity.hpp"
#include "cache/shortage.hpp"

#include <fmt/format.h>

#include <utility>

namespace weightfs::cache {

using telemetry::Event;
using telemetry::EventKind;

Event DecisionEvents::about_all(EventKind kind, const snapshot::Snapshot& snapshot) const {
  Event event = about(kind, snapshot);
  event.name = catalog_.name_of(snapshot.key());
  return event;
}

void DecisionEvents::referred(const snapshot::Snapshot& snapshot, policy::References::Seen seen,
                              policy::Area area, const std::string& consumer) const {
  if (seen == policy::References::Seen::kFirst) {
    admitted(snapshot, area, consumer, "first consumer");
  } else if (seen == policy::References::Seen::kSecond) {
    admitted(snapshot, area, consumer, "second consumer");
  }
}

void DecisionEvents::asked_for(const snapshot::Snapshot& snapshot) const {
  admitted(snapshot, policy::Area::kResident, {}, "asked for");
}

void DecisionEvents::admitted(const snapshot::Snapshot& snapshot, policy::Area area,
                              const std::string& consumer, const char* reason) const {
  Event event = about_all(EventKind::kAdmission, snapshot);
  event.action = area == policy::Area::kResident ? "resident" : "probation";
  event.consumer = consumer;
  event.reason = reason;
  events_.put(std::move(event));
}

void DecisionEvents::refused(const snapshot::Snapshot& snapshot, const policy::Plan& plan) const {
  Event event = about_all(EventKind::kRefusal, snapshot);
  event.reason = describe_shortage(plan);
  events_.put(std::move(event));
}

void DecisionEvents::refused(const fetch::Target& target, const policy::Plan& plan) const {
  Event event = about(EventKind::kRefusal, *target.snapshot, target.file_index);
  event.name = catalog_.name_of(target.snapshot->key());
  event.reason = describe_shortage(plan);
  events_.put(std::move(event));
}

void DecisionEvents::evicted(const snapshot::Snapshot& snapshot, std::uint64_t bytes,
                             const policy::Claim& claim) const {
  Event event = about_all(EventKind::kEviction, snapshot);
  event.bytes = bytes;
  event.reason = claim.bytes == 0 ? "the limits"
                                  : fmt::format("room for {} of {}", readable_size(claim.bytes),
                                                claim.snapshot.short_hex());
  events_.put(std::move(event));
}

void DecisionEvents::evicted_strays(std::uint64_t bytes) const {
  events_.put({.kind = EventKind::kEviction, .bytes = bytes, .reason = "no model has these files"});
}

}  // namespace weightfs::cache
