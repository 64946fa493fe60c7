// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "weightfs/values.hpp"

#include <string>

namespace weightfs::cli {

/// The status for a person: one line per subject, one per file that is being fetched. Pure.
[[nodiscard]] std::string status_text(const api::Status& status);

}  // namespace weightfs::cli
