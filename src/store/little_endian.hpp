// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weightfs::store {

/// Appends the `bytes` low bytes of `value`, least significant first.
inline void append_little_endian(std::string& out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

/// Reads them back; `at + bytes` must lie within `in`.
inline std::uint64_t read_little_endian(std::string_view in, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    value |= std::uint64_t{static_cast<std::uint8_t>(in[at + i])} << (8 * i);
  }
  return value;
}

}  // namespace weightfs::store
