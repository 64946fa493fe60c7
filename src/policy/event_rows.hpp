// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "policy/trace_builder.hpp"

#include <cstdint>
#include <string_view>

namespace weightfs::policy {

/// One line of the events log: a JSON object. A "hit" and a "miss" are a reference of "consumer" to
/// "snapshot" of "bytes" at "time" (seconds since 1970, or a date and time), on "node" if that is
/// given; other events are passed over. A row is added or skipped.
void read_event(std::string_view line, std::uint64_t number, TraceBuilder& trace);

}  // namespace weightfs::policy
