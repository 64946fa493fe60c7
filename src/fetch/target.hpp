// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "snapshot/snapshot.hpp"
#include "source/source.hpp"
#include "store/partial_blob.hpp"

#include <cstddef>
#include <cstdint>

namespace weightfs::fetch {

/// One file of one snapshot, and where its bytes come from. A value.
struct Target {
  snapshot::SnapshotPtr snapshot;
  std::size_t file_index = 0;
  source::SourcePtr source;

  [[nodiscard]] const snapshot::File& file() const { return snapshot->files()[file_index]; }
  /// What single flight goes by: the sha256 where it is known, else the sha256 over source, path
  /// and validator, so that the same bytes in two snapshots are one fill.
  [[nodiscard]] store::PartialKey key() const;
  /// What key() is, or was, while the sha256 is not known.
  [[nodiscard]] store::PartialKey unlearned_key() const;
};

/// Error(kInvalid) if content that goes by the target's key has another size than its listing says:
/// readers would be told the one and given the other.
void check_size(const Target& target, std::uint64_t found);

}  // namespace weightfs::fetch
