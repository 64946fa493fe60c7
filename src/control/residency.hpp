// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "fetch/fetcher.hpp"
#include "store/store.hpp"

#include <cstddef>
#include <cstdint>

namespace weightfs::control {

/// How much of a file, or of a whole snapshot, is on the local disk.
struct Residency {
  std::uint64_t bytes = 0;     ///< on disk, verified or not
  std::uint64_t verified = 0;  ///< in published blobs
  std::size_t files_complete = 0;
  bool complete = false;  ///< every file is
};

[[nodiscard]] Residency residency(const store::Store& store, const fetch::Fetcher& fetcher,
                                  const fetch::Target& target);
[[nodiscard]] Residency residency(const store::Store& store, const fetch::Fetcher& fetcher,
                                  const snapshot::SnapshotPtr& snapshot);

}  // namespace weightfs::control
