// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors

// What is admitted by somebody's word, not by its references.

#include "base/error.hpp"
#include "base/quantity.hpp"
#include "cache/governor.hpp"
#include "cache/shortage.hpp"
#include "snapshot/reference.hpp"

#include <fmt/format.h>

#include <unordered_set>

namespace weightfs::cache {

using policy::Area;
using snapshot::SnapshotPtr;

/// By the word of a person or a scheduler.
bool Governor::kept(const Digest& snapshot_key) const {
  return parts_.catalog.pinned(snapshot_key) || parts_.catalog.leases().holds(snapshot_key);
}

void Governor::admit(const SnapshotPtr& snapshot) {
  auto turn = turn_.lock();
  count(*turn);
  check_fits(snapshot);
  prove(snapshot);
}

void Governor::check_fits(const SnapshotPtr& snapshot) const {
  const std::uint64_t missing = missing_bytes(snapshot);
  const policy::Plan fits =
      plan({.snapshot = snapshot->key(), .area = Area::kResident, .bytes = missing});
  if (missing == 0 || fits.fits) return;
  decisions_.refused(*snapshot, fits);
  throw Error(Errc::kNoSpace,
              fmt::format("no space for {} of {}: the store may take {}, which is {}",
                          readable_size(missing), snapshot::shown_source(snapshot->source()),
                          readable_size(budget().capacity), describe_shortage(fits)));
}

void Governor::reserve(const std::vector<SnapshotPtr>& snapshots) {
  auto turn = turn_.lock();
  count(*turn);
  std::unordered_set<Digest> wanted;
  std::unordered_set<Digest> counted;  // contents: what two of them have takes its space once
  const auto missing_of = [&](const SnapshotPtr& snapshot) {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < snapshot->files().size(); ++i) {
      const fetch::Target file{.snapshot = snapshot, .file_index = i, .source = nullptr};
      if (counted.insert(file.key()).second) bytes += missing_bytes(file);
    }
    return bytes;
  };
  std::uint64_t missing = 0;
  for (const SnapshotPtr& snapshot : snapshots) {
    if (wanted.insert(snapshot->key()).second) missing += missing_of(snapshot);
  }
  std::uint64_t promised = 0;
  for (const SnapshotPtr& other : parts_.catalog.snapshots()) {
    if (!wanted.contains(other->key()) && kept(other->key())) promised += missing_of(other);
  }
  const policy::Plan fits =
      plan({.snapshot = {}, .area = Area::kResident, .bytes = missing + promised}, {}, wanted);
  if (missing > 0 && !fits.fits) {
    const std::string beside = promised == 0 ? ""
                                             : " beside " + readable_size(promised) +
                                                   " that pins and leases have yet to get";
    throw Error(
        Errc::kNoSpace,
        fmt::format("no space for {}{}: the store may take {}, which is {}", readable_size(missing),
                    beside, readable_size(budget().capacity), describe_shortage(fits)));
  }
  // Each for itself, too, for what its tenant may have.
  for (const SnapshotPtr& snapshot : snapshots) check_fits(snapshot);
  for (const SnapshotPtr& snapshot : snapshots) {
    if (wanted.erase(snapshot->key()) > 0) prove(snapshot);
  }
}

}  // namespace weightfs::cache
