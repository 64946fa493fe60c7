// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "policy/trace_builder.hpp"

#include <cstdint>
#include <string_view>

namespace weightfs::policy {

/// One line of the events log (telemetry/event_line.hpp): a JSON object. A "reference" is the use
/// of "snapshot", of "bytes" in all, by "consumer" at "time" (seconds since 1970, or a date and
/// time), on "node" if that is given. Other events are passed over: hits and misses are of single
/// files, and what a consumer that comes back finds open already is none. A row is added or
/// skipped.
void read_event(std::string_view line, std::uint64_t number, TraceBuilder& trace);

}  // namespace weightfs::policy
