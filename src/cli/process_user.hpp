// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <sys/types.h>
#include <string>

namespace weightfs::cli {

/// Who the daemon runs as.
struct ProcessUser {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
};

/// The user of this name; where it is empty, "weightfs", else "nobody". Error(kInvalid) where there
/// is none.
[[nodiscard]] ProcessUser find_user(const std::string& name);

}  // namespace weightfs::cli
