// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "catalog/lease.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace weightfs::catalog {

/// Leases by id.
using LeaseMap = std::map<std::string, Lease, std::less<>>;

/// The leases as `leases.json` holds them (FORMAT.md). An absent file is no lease.
/// Error(kUnsupported) another version, kCorrupt anything malformed.
[[nodiscard]] LeaseMap read_leases(const std::filesystem::path& file);
/// Durable when it returns.
void write_leases(const std::filesystem::path& file, const LeaseMap& leases);

}  // namespace weightfs::catalog
