// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// A lease is a scheduler's word that models are to be on this node when a job begins, and to stay
/// until it is over. As in weightfs/values.hpp, member names are the keys of the JSON; but times
/// are text as of RFC 3339.
namespace weightfs::api {

struct LeaseRequest {
  /// Each a NAME (what it shows now), a NAME@REVISION, or the id or key of a snapshot.
  std::vector<std::string> artifacts;
  std::string not_before;       ///< when the job begins: all is to be there by then
  std::string until;            ///< when the lease is over
  std::uint64_t bandwidth = 0;  ///< to fetch it with, at most, bytes per second; 0: no limit
  std::int64_t priority = 0;    ///< of leases due at the same time the higher goes first
  /// For whom, as text for people; empty: as before, or the user whom the request is from.
  std::string owner = {};
  bool operator==(const LeaseRequest&) const = default;
};

/// One artifact of a lease: the snapshot that it was when the lease was taken or last renewed.
struct LeasedSnapshot {
  std::string artifact;  ///< as it was asked for
  std::string key;
  std::string revision;  ///< empty where the snapshot is not known any more
  std::uint64_t bytes = 0;
  std::uint64_t missing_bytes = 0;     ///< yet to be fetched
  std::uint64_t unverified_bytes = 0;  ///< fetched, but their digest is not known to be right yet
  bool complete = false;               ///< every byte is there, and right
  std::string error;                   ///< why the last attempt to fetch it failed
  bool operator==(const LeasedSnapshot&) const = default;
};

struct Lease {
  std::string id;
  std::vector<std::string> artifacts;
  std::string not_before;
  std::string until;
  std::uint64_t bandwidth = 0;
  std::int64_t priority = 0;
  std::string owner = {};
  /// The id of the user who took it, and who alone may renew it or end it, but for root and the
  /// daemon's own user. Nobody knows, and anybody may, where it is not set.
  std::optional<std::uint64_t> user = {};
  std::uint64_t bytes = 0;  ///< what several of its artifacts have counts with each
  std::uint64_t missing_bytes = 0;
  std::uint64_t unverified_bytes = 0;
  bool complete = false;
  bool late = false;     ///< not_before is over, and it is not complete
  bool at_risk = false;  ///< as things go, it will be late
  std::vector<LeasedSnapshot> snapshots;
  bool operator==(const Lease&) const = default;
};

}  // namespace weightfs::api
