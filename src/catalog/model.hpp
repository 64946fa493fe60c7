// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "digest/digest.hpp"
#include "snapshot/snapshot.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weightfs::catalog {

/// Somebody's word that a model is to stay, whatever else needs the room. A value.
struct Pin {
  std::string reason;
  std::string owner;       ///< who said so, where that is known
  std::int64_t until = 0;  ///< seconds since 1970; 0: for good
  [[nodiscard]] bool holds(std::int64_t now) const noexcept { return until == 0 || now < until; }
  bool operator==(const Pin&) const = default;
};

/// Where a revision was found, and what it is called there. A value.
struct Origin {
  std::string source;  ///< reference text
  std::string revision;
  bool operator==(const Origin&) const = default;
};

/// A name under the mount and the revisions it has had. A value. Snapshots go by key.
struct Model {
  std::string name;               ///< "org/name": one or more components, see check_name
  std::string source;             ///< reference text, resolved again by update
  Digest current;                 ///< what the name shows now
  std::vector<Digest> revisions;  ///< every revision known, oldest first; contains current
  /// Of revisions that the snapshot itself calls otherwise: what has the same files is the same
  /// snapshot, in whichever commit of whichever repository.
  std::map<Digest, Origin> origins;
  /// What the name is rolled back to. Before any was confirmed, what it showed first.
  std::optional<Digest> confirmed;
  bool declared = false;  ///< by the configuration, which may take it away again
  std::optional<Pin> pin;
  std::int64_t added = 0;    ///< seconds since 1970
  std::int64_t updated = 0;  ///< of the last flip

  /// Of one of the revisions.
  [[nodiscard]] Origin origin(const snapshot::Snapshot& revision) const;
  [[nodiscard]] bool pinned(std::int64_t now) const noexcept { return pin && pin->holds(now); }
  /// As it is at this time: without a pin that is over.
  [[nodiscard]] Model at(std::int64_t now) const;
};

/// One entry of a directory made of names.
struct Child {
  std::string component;
  bool is_model = false;  ///< a name ends here; else it goes on
};

/// Error(kInvalid) unless the name is a valid path whose components do not begin with '.' and
/// contain no '@' (that separates a revision).
void check_name(std::string_view name);

}  // namespace weightfs::catalog
