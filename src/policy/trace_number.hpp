// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weightfs::policy {

/// Numbers as traces have them. Pure; nullopt where the text is none.

/// "12.5" times `unit` milliseconds, or a date and time as of RFC 3339 ("2026-03-01T12:00:00.5Z", a
/// space for the T allowed, UTC where no zone is given).
[[nodiscard]] std::optional<std::chrono::milliseconds> trace_time(std::string_view text,
                                                                  double unit);

/// "12.5" times `unit` bytes, or a size with a unit of its own ("10GiB").
[[nodiscard]] std::optional<std::uint64_t> trace_size(std::string_view text, double unit);

/// Milliseconds of s, ms, us, ns.
[[nodiscard]] std::optional<double> time_unit(std::string_view name);
/// Bytes of B, kB, GiB and so on, letters of either case.
[[nodiscard]] std::optional<double> size_unit(std::string_view name);

}  // namespace weightfs::policy
