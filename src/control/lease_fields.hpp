// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "control/fields.hpp"
#include "weightfs/leases.hpp"

namespace weightfs::control {

// As fields.hpp, of leases.

void each_field(IsValue<api::LeaseRequest> auto& value, auto&& visit) {
  visit("artifacts", value.artifacts);
  visit("not_before", value.not_before);
  visit("until", value.until);
  visit("bandwidth", value.bandwidth);
  visit("priority", value.priority);
  visit("owner", value.owner);
}

void each_field(IsValue<api::LeasedSnapshot> auto& value, auto&& visit) {
  visit("artifact", value.artifact);
  visit("key", value.key);
  visit("revision", value.revision);
  visit("bytes", value.bytes);
  visit("missing_bytes", value.missing_bytes);
  visit("unverified_bytes", value.unverified_bytes);
  visit("complete", value.complete);
  visit("error", value.error);
}

void each_field(IsValue<api::Lease> auto& value, auto&& visit) {
  visit("id", value.id);
  visit("artifacts", value.artifacts);
  visit("not_before", value.not_before);
  visit("until", value.until);
  visit("bandwidth", value.bandwidth);
  visit("priority", value.priority);
  visit("owner", value.owner);
  visit("user", value.user);
  visit("bytes", value.bytes);
  visit("missing_bytes", value.missing_bytes);
  visit("unverified_bytes", value.unverified_bytes);
  visit("complete", value.complete);
  visit("late", value.late);
  visit("at_risk", value.at_risk);
  visit("snapshots", value.snapshots);
}

}  // namespace weightfs::control
