// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "digest/digest.hpp"
#include "vfs/session_log.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weightfs::vfs {

/// Numbers the directories of the mount that node ids begin with. A snapshot shown in two places is
/// two trees: the kernel allows a directory one name only. Numbers are given out once per session,
/// written to the SessionLog before anybody sees them, and never reused.
///
/// Thread-safe. The SessionLog must outlive it.
class TreeTable {
 public:
  enum class Kind : char {
    kNamespace = 'n',  ///< a directory made of names; `path` is the prefix, "" the root (number 0)
    kSnapshots = 's',  ///< .snapshots
    kView = 'v',       ///< one snapshot at one place: `path` is that place, `key` the snapshot's
    kHub = 'h',        ///< a directory of the Hub's cache: `path` is below .hub, "" itself
    kLinks = 'l',      ///< a snapshot in there: likewise, and `key` is the snapshot's
    kText = 't',       ///< a file in there that is generated: `path` says which, `key` of what
  };
  struct Tree {
    Kind kind = Kind::kNamespace;
    std::string path;
    Digest key;
    auto operator<=>(const Tree&) const = default;
  };

  /// Takes up what earlier daemons of the session recorded.
  explicit TreeTable(SessionLog& log);

  [[nodiscard]] std::optional<Tree> find(std::uint32_t number) const;
  /// The number of this tree, a new one if it has none yet. Error(kNoSpace) when they are used up.
  std::uint32_t number_of(const Tree& tree);

 private:
  struct State {
    std::vector<Tree> trees;
    std::map<Tree, std::uint32_t> numbers;
  };

  SessionLog& log_;
  Synchronized<State> state_;
};

}  // namespace weightfs::vfs
