// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "policy/room.hpp"

#include <string>

namespace weightfs::cache {

/// By how much a plan that does not fit falls short, and what was passed over, for a person. Pure.
[[nodiscard]] std::string describe_shortage(const policy::Plan& plan);

}  // namespace weightfs::cache
