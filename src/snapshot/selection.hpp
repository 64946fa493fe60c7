// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weightfs::snapshot {

/// Which files of a source are wanted, by patterns as the Hub's own client takes them: fnmatch(3)
/// over the whole path, in which '*' matches '/', too; one that ends in '/' means all below it. A
/// value.
struct Selection {
  std::vector<std::string> allow;   ///< at least one must match; none: all do
  std::vector<std::string> ignore;  ///< none may match

  [[nodiscard]] bool empty() const noexcept { return allow.empty() && ignore.empty(); }
  [[nodiscard]] bool takes(std::string_view path) const;

  bool operator==(const Selection&) const = default;
};

}  // namespace weightfs::snapshot
