// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/lease_text.hpp"

#include "base/quantity.hpp"

#include <fmt/format.h>

namespace weightfs::cli {

std::string lease_state(const api::Lease& lease) {
  if (lease.complete) return "complete";
  const std::string what =
      lease.missing_bytes > 0 ? fmt::format("{} missing", readable_size(lease.missing_bytes))
      : lease.unverified_bytes > 0
          ? fmt::format("{} to be verified", readable_size(lease.unverified_bytes))
          : "not complete";
  return what + (lease.late ? ", late" : lease.at_risk ? ", at risk" : "");
}

std::string lease_text(const api::Lease& lease) {
  std::string text = lease.id + ":";
  for (const std::string& artifact : lease.artifacts) text += " " + artifact;
  if (!lease.owner.empty()) text += ", for " + lease.owner;
  text += fmt::format(", from {} until {}: {}", lease.not_before, lease.until, lease_state(lease));
  for (const api::LeasedSnapshot& one : lease.snapshots) {
    if (!one.error.empty()) text += fmt::format("; {}: {}", one.artifact, one.error);
  }
  return text;
}

}  // namespace weightfs::cli
