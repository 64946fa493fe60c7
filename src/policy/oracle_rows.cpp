// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "policy/oracle_rows.hpp"

#include <cstdint>

namespace weightfs::policy {

namespace {

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

}  // namespace

void read_oracle_record(std::string_view record, std::uint64_t number, TraceBuilder& trace) {
  trace.add({.line = number,
             .artifact = record.substr(4, 8),
             .time = std::chrono::seconds{little_endian(record.substr(0, 4))},
             .bytes = little_endian(record.substr(12, 4))});
}

}  // namespace weightfs::policy
