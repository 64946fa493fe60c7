// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "weightfs/values.hpp"

#include <string>

namespace weightfs::cli {

/// A line for each difference, the models first; empty where there is none.
[[nodiscard]] std::string config_diff_text(const api::ConfigDiff& diff);

}  // namespace weightfs::cli
