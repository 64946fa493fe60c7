// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "control/operations.hpp"
#include "weightfs/values.hpp"

#include <string>

namespace weightfs::tests {

/// How FakeOperations records what it is asked.
inline std::string call_of(const api::AddRequest& request) {
  return "add " + request.name + " " + request.source +
         (request.allow_missing ? " allow_missing" : "") +
         (request.expect.empty() ? "" : " expect " + request.expect);
}

inline std::string call_of(const std::string& name, const control::UpdateHow& how) {
  return "update " + name + (how.staging == control::Staging::kCold ? " cold" : "") +
         (how.missing == control::Missing::kAllowed ? " allow_missing" : "") +
         (how.flip == control::Flip::kNow ? " now" : "");
}

inline std::string call_of(const api::ImportRequest& request) {
  std::string call = "import " + request.directory;
  for (const std::string& name : request.names) call += " " + name;
  if (request.link) call += " link";
  if (request.dry_run) call += " dry";
  return call;
}

/// What comes of an import.
inline api::ImportResult fake_import(const api::ImportRequest& request) {
  return {.dry_run = request.dry_run,
          .taken = {.files = 1, .bytes = 7},
          .copied = {.files = 1, .bytes = 7},
          .files = {{.path = "/d/x", .file = "org/m/x", .size = 7, .how = "copied"}},
          .faults = {{.path = "/d/y", .code = "permission", .message = "no"}}};
}

/// What prune takes and leaves.
inline api::Pruned fake_prune(bool dry_run) {
  return {.dry_run = dry_run,
          .removed = {{.name = "org/m", .revision = "r1"}},
          .kept = {{.name = "org/m", .revision = "r2", .kept = "confirmed"}},
          .blobs = 3,
          .bytes = 3'000'000'000};
}

}  // namespace weightfs::tests
