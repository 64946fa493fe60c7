// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <string>

namespace weightfs::cli {

/// What the command line can tell about an argument without the daemon: UsageError where it is
/// wrong.
void check_name_argument(const std::string& name);
void check_source_argument(const std::string& source);
void check_lease_argument(const std::string& id);

}  // namespace weightfs::cli
