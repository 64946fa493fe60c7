// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "weightfs/leases.hpp"

#include <string>

namespace weightfs::cli {

/// "complete", or what is missing, and whether that comes in time. Pure.
[[nodiscard]] std::string lease_state(const api::Lease& lease);
/// The lease in a line, for `status` and those who have just taken it. Pure.
[[nodiscard]] std::string lease_text(const api::Lease& lease);

}  // namespace weightfs::cli
