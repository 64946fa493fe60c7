// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "weightfs/events.hpp"

#include <string>

namespace weightfs::cli {

/// One line for a person, without its end: the time (UTC), what happened to what, how much, who did
/// it and why.
[[nodiscard]] std::string event_text(const api::Event& event);

}  // namespace weightfs::cli
