// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "telemetry/event.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace weightfs::telemetry {

/// The line of an event in the log: a JSON object, without the line's end (store/FORMAT.md). What
/// does not apply is left out. Pure.
[[nodiscard]] std::string line_of(const Event& event);

/// What line_of made it of; members that are not known are passed over. nullopt where it is no such
/// line, or of a kind that is not known. Pure.
[[nodiscard]] std::optional<Event> event_of(std::string_view line);

}  // namespace weightfs::telemetry
