// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <string>
#include <vector>

namespace weightfs::cli {

/// What a person says of where a model comes from.
struct SourceArgument {
  std::vector<std::string> sources;   ///< that have the same, in the order in which they are tried
  std::vector<std::string> parts;     ///< or PART=SOURCE each, of a release
  std::vector<std::string> overlays;  ///< of the parts, by name
  std::vector<std::string> allow;     ///< patterns of the files that are wanted ...
  std::vector<std::string> ignore;    ///< ... and of those that are not

  /// The reference that says all of it: the one source as it stands, if there is no more to say,
  /// else a snapshot::Release. UsageError says what of it is wrong.
  [[nodiscard]] std::string reference() const;
};

}  // namespace weightfs::cli
