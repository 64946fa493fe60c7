// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "digest/digest.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weightfs::catalog {

/// A scheduler's word that snapshots are to be there, and to stay, for a job to come. A value.
/// Times are seconds since 1970.
struct Lease {
  struct Artifact {
    std::string text;  ///< as it was asked for: a name, a revision of one, a snapshot
    Digest snapshot;   ///< what that was when the lease was taken; by key
    bool operator==(const Artifact&) const = default;
  };

  std::string id;  ///< chosen by who takes it, see check_lease_id
  std::vector<Artifact> artifacts;
  std::int64_t not_before = 0;  ///< when the job begins: all of it is to be there by then
  std::int64_t until = 0;       ///< when the lease is over
  std::uint64_t bandwidth = 0;  ///< bytes per second to fetch it with, at most; 0: no limit
  std::int64_t priority = 0;    ///< of two that are due at the same time, the higher goes first
  std::optional<std::uint32_t> user = {};  ///< the id of who took it; nullopt: nobody knows
  std::string owner = {};                  ///< for whom, as text for people
  bool operator==(const Lease&) const = default;
};

/// Who wants a lease to be another one. A value.
struct LeaseAsker {
  enum class May { kOwn, kAny };
  std::optional<std::uint32_t> user = {};  ///< nullopt: nobody knows
  std::string name = {};                   ///< the owner of a lease that names none
  May may = May::kOwn;                     ///< whose leases
};

/// Error(kPermission) unless they may renew this lease, or end it: who took it may, and so may
/// everybody where nobody knows who that was.
void check_may_change(const Lease& lease, const LeaseAsker& asker);

/// Error(kInvalid) unless it is 1 to 128 of A-Z, a-z, 0-9, '.', '_' and '-', and begins with a
/// letter or a digit.
void check_lease_id(std::string_view id);

}  // namespace weightfs::catalog
