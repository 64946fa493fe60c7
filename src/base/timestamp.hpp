// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weightfs {

/// Points in time as text. Pure; independent of the locale and of the zone of the process.

/// What a time that does not say its zone is taken for.
enum class NoZone { kUtc, kRefused };

/// RFC 3339 ("2026-03-01T12:00:00.5+01:00"); a space for the T, and a zone without its colon, are
/// understood as well. Milliseconds since 1970; nullopt for anything else.
[[nodiscard]] std::optional<std::chrono::milliseconds> read_date_and_time(std::string_view text,
                                                                          NoZone without);

/// Seconds since 1970 of what a person or a scheduler writes: RFC 3339 with its zone, or a date
/// alone ("2026-03-01"), which is the beginning of that day, UTC. Error(kInvalid) with what is
/// right.
[[nodiscard]] std::int64_t parse_timestamp(std::string_view text);

/// "2026-03-01T12:00:00Z", of seconds since 1970: what parse_timestamp reads back as the same.
[[nodiscard]] std::string show_timestamp(std::int64_t seconds);

}  // namespace weightfs
