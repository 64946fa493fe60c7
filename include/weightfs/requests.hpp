// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <string>
#include <vector>

/// The bodies of requests of the control API, as values. As in weightfs/values.hpp, member names
/// are the keys of the JSON.
namespace weightfs::api {

struct AddRequest {
  std::string name;
  std::string source;
  /// Take it though a file is missing that its loader will need.
  bool allow_missing = false;
  /// The id of the snapshot that it must be, 64 hexadecimal digits; empty: whatever there is.
  std::string expect;
  bool operator==(const AddRequest&) const = default;
};

struct ImportRequest {
  std::string directory;           ///< absolute, as the daemon sees it
  std::vector<std::string> names;  ///< of models; empty: all
  bool link = false;               ///< hard links instead of reflinks and copies
  bool dry_run = false;
  bool operator==(const ImportRequest&) const = default;
};

struct PinRequest {
  std::string reason;
  std::string owner;  ///< empty: the user whom the request is from
  std::string until;  ///< RFC 3339, or a date; empty: for good
  bool operator==(const PinRequest&) const = default;
};

struct ModeRequest {
  std::string mode;  ///< "prod", "off" or "shadow"
  bool operator==(const ModeRequest&) const = default;
};

struct UnmountRequest {
  bool lazy = false;
  bool operator==(const UnmountRequest&) const = default;
};

}  // namespace weightfs::api
