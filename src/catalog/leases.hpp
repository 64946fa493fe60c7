// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/synchronized.hpp"
#include "catalog/lease.hpp"
#include "catalog/lease_file.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace weightfs::catalog {

/// The leases of this node, durable in `leases.json` of the state directory (FORMAT.md). One that
/// is over by the clock is not to be found any more, whether or not it still stands in the file.
/// Every change is on disk before the call returns; a failed write changes nothing. Thread-safe.
/// `clock` must outlive it.
class Leases {
 public:
  static constexpr std::size_t kMost = 1024;
  static constexpr std::size_t kMostArtifacts = 256;  ///< of each

  /// Reads what is there. Error(kUnsupported) for a version of the format that is not ours. A
  /// damaged file is set aside (`*.damaged`): who needs its leases takes them again.
  Leases(std::filesystem::path file, const Clock& clock, Log log);

  enum class Put { kTaken, kRenewed };
  /// Takes it for the asker, or renews the one with its id, which stays whose it was. Error
  /// kInvalid (see check_lease), kPermission (see check_may_change), kBusy where there are kMost
  /// others.
  Put put(Lease lease, const LeaseAsker& asker = {});
  /// What was removed; nullopt where there is none. Error(kPermission), see check_may_change.
  std::optional<Lease> remove(const std::string& id, const LeaseAsker& asker = {});
  /// Takes those that are over out of the file, and returns them, each once.
  std::vector<Lease> expire();

  [[nodiscard]] std::optional<Lease> find(const std::string& id) const;
  [[nodiscard]] std::vector<Lease> list() const;  ///< sorted by id
  /// Whether this snapshot is leased now. Cheap.
  [[nodiscard]] bool holds(const Digest& snapshot_key) const;

 private:
  struct Tables {
    LeaseMap leases;
    std::unordered_map<Digest, std::int64_t> ends;  ///< the last one, by snapshot
  };
  template <class Change>
  auto update(const Change& change);
  [[nodiscard]] static Tables index(LeaseMap leases);
  [[nodiscard]] std::int64_t now() const;

  const std::filesystem::path file_;
  const Clock& clock_;
  const Log log_;
  struct Writer {};
  Synchronized<Writer> writer_;  ///< before tables_ in lock order; held across writes
  Synchronized<Tables> tables_;
};

/// Error(kInvalid) where such a lease cannot be taken at this time (seconds since 1970): its id,
/// its artifacts, its times.
void check_lease(const Lease& lease, std::int64_t now);

}  // namespace weightfs::catalog
