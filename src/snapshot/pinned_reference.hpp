// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "digest/digest.hpp"
#include "snapshot/reference.hpp"
#include "snapshot/snapshot.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace weightfs::snapshot {

/// What a person writes for a source and, after an '@', the revision that it must have:
/// `https://host/models/llama/@<64 hexadecimal digits>`. A file or http source has none but the
/// digests of its listing, so only those, whole, are taken for one: an '@' may stand in a path. A
/// value; parsing touches neither disk nor network.
struct PinnedReference {
  Reference source;                ///< what is resolved
  std::optional<Digest> revision;  ///< a snapshot's id or key; nullopt: whatever there is now

  /// Error(kInvalid), as Reference::parse.
  [[nodiscard]] static PinnedReference parse(std::string_view text);
  /// Whether it always means the same: it has a revision, or its source is a commit.
  [[nodiscard]] bool fixed() const;
  /// Normalised; parse() of it gives the same.
  [[nodiscard]] std::string text() const;
};

/// What to write for exactly this snapshot: by its commit, where it is of the Hub; else by its id,
/// which it has wherever it is resolved; by its key as long as it is provisional. A query is left
/// out (shown_source).
[[nodiscard]] std::string shown_reference(const Snapshot& snapshot);

}  // namespace weightfs::snapshot
