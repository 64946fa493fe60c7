// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/residency.hpp"

namespace weightfs::control {

Residency residency(const store::Store& store, const fetch::Fetcher& fetcher,
                    const fetch::Target& target) {
  const snapshot::File& file = target.file();
  // An empty file has nothing to wait for.
  const bool complete = file.size == 0 || (file.sha256 && store.contains(*file.sha256, file.size));
  if (complete) {
    return {.bytes = file.size, .verified = file.size, .files_complete = 1, .complete = true};
  }
  return {.bytes = fetcher.resident_bytes(target)};
}

Residency residency(const store::Store& store, const fetch::Fetcher& fetcher,
                    const snapshot::SnapshotPtr& snapshot) {
  Residency sum;
  for (std::size_t i = 0; i < snapshot->files().size(); ++i) {
    const Residency file = residency(store, fetcher, {.snapshot = snapshot, .file_index = i});
    sum.bytes += file.bytes;
    sum.verified += file.verified;
    sum.files_complete += file.files_complete;
  }
  sum.complete = sum.files_complete == snapshot->files().size();
  return sum;
}

}  // namespace weightfs::control
