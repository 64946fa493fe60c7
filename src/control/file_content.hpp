// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "fetch/fetcher.hpp"

#include <stop_token>
#include <string>

namespace weightfs::control {

/// All bytes of a small file, fetched where they are not in the store yet. Blocks. Error: what ends
/// the read (fetch::Fill), kCancelled.
[[nodiscard]] std::string file_content(fetch::Fetcher& fetcher, const fetch::Target& target,
                                       std::stop_token stop);

}  // namespace weightfs::control
