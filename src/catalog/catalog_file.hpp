// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "catalog/models.hpp"

#include <filesystem>

namespace weightfs::catalog {

/// The names as `catalog.json` holds them (FORMAT.md). An absent file is an empty catalog.
/// Error(kUnsupported) another version, kCorrupt anything malformed.
[[nodiscard]] Models read_models(const std::filesystem::path& file);
/// Durable when it returns.
void write_models(const std::filesystem::path& file, const Models& models);

}  // namespace weightfs::catalog
