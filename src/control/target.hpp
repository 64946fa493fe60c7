// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace weightfs::control {

/// The target of a request, taken apart: "/v1/models/org/name:warm?dry_run=1" has the path
/// "/v1/models/org/name", the action "warm" and one parameter. The action is what follows the last
/// ':' that stands as itself after the last '/': a ':' that belongs to a name travels as %3A.
struct Target {
  std::string path;                               ///< percent-decoded, the action taken off
  std::string action;                             ///< without the ':'; empty where there is none
  std::map<std::string, std::string> parameters;  ///< decoded; of equal names the last

  /// True for "1" and "true", false for "0", "false" and where it is absent. Error(kInvalid)
  /// otherwise.
  [[nodiscard]] bool flag(const std::string& name) const;
};

/// Error(kInvalid) for a broken escape, a NUL, or a target that does not begin with '/'. Its
/// counterparts are net::percent_encode_path for a path, net::percent_encode for a parameter.
[[nodiscard]] Target parse_target(std::string_view text);

}  // namespace weightfs::control
