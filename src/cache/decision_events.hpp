// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "catalog/catalog.hpp"
#include "fetch/target.hpp"
#include "policy/references.hpp"
#include "policy/room.hpp"
#include "telemetry/events.hpp"

#include <cstdint>
#include <string>

namespace weightfs::cache {

/// Tells the decisions of a Governor. Thread-safe.
class DecisionEvents {
 public:
  /// `catalog` must outlive it.
  DecisionEvents(telemetry::Events events, const catalog::Catalog& catalog)
      : events_(events), catalog_(catalog) {}

  /// Of a reference: only the first one and the second decide anything.
  void referred(const snapshot::Snapshot& snapshot, policy::References::Seen seen,
                policy::Area area, const std::string& consumer) const;
  void asked_for(const snapshot::Snapshot& snapshot) const;
  void refused(const snapshot::Snapshot& snapshot, const policy::Plan& plan) const;
  void refused(const fetch::Target& target, const policy::Plan& plan) const;
  /// `claim`: what its room is for; of no bytes: the limits themselves.
  void evicted(const snapshot::Snapshot& snapshot, std::uint64_t bytes,
               const policy::Claim& claim) const;
  void evicted_strays(std::uint64_t bytes) const;

 private:
  void admitted(const snapshot::Snapshot& snapshot, policy::Area area, const std::string& consumer,
                const char* reason) const;

  [[nodiscard]] telemetry::Event about_all(telemetry::EventKind kind,
                                           const snapshot::Snapshot& snapshot) const;

  telemetry::Events events_;
  const catalog::Catalog& catalog_;
};

}  // namespace weightfs::cache
