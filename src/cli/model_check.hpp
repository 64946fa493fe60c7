// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cli/settings.hpp"

#include <vector>

namespace weightfs::cli {

/// What can be told of the models of the settings without asking their sources: UsageError that
/// names the first that cannot be, by its name, its source, or because it lies inside another.
void check_models(const std::vector<ModelSetting>& models);

}  // namespace weightfs::cli
