// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "policy/trace_builder.hpp"

#include <cstddef>
#include <string_view>

namespace weightfs::policy {

/// A record of libCacheSim's oracleGeneral: packed, little endian, 4 bytes of time in seconds, 8 of
/// object id, 4 of object size, 8 of the next access, which is not used here.
/// Source: libCacheSim, traceReader/customizedReader/oracle/oracleGeneralBin.h.
inline constexpr std::size_t kOracleRecord = 24;

/// Exactly one record.
void read_oracle_record(std::string_view record, std::uint64_t number, TraceBuilder& trace);

}  // namespace weightfs::policy
