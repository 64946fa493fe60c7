// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace weightfs {

/// Quantities as a person writes them, in flags, environment and configuration. Pure.

/// Bytes: a whole or decimal number and a unit: none or B, kB MB GB TB PB (powers of 1000), KiB MiB
/// GiB TiB PiB (powers of 1024). Letters of either case, one space allowed before the unit; a
/// fraction must come out as whole bytes. Error(kInvalid) with what is right.
[[nodiscard]] std::uint64_t parse_size(std::string_view text);

/// Bytes per second: as parse_size, "/s" behind it or not; "unlimited" or 0 for no limit, which is
/// 0. Error(kInvalid).
[[nodiscard]] std::uint64_t parse_rate(std::string_view text);

/// A time of whole numbers with units in falling order: d h m s ms, as "30s", "12h", "2m30s". "0"
/// needs no unit; any other number does, because 30 may mean seconds or milliseconds.
/// Error(kInvalid).
[[nodiscard]] std::chrono::milliseconds parse_duration(std::string_view text);

/// The shortest text that parse_size reads back as the same number: "8MiB", "500GB", "1234".
[[nodiscard]] std::string exact_size(std::uint64_t bytes);
/// The shortest text that parse_rate reads back as the same rate: "500MB/s", "unlimited".
[[nodiscard]] std::string exact_rate(std::uint64_t bytes_per_second);
/// The shortest text that parse_duration reads back as the same time: "2m30s", "0s".
[[nodiscard]] std::string exact_duration(std::chrono::milliseconds time);

/// Three digits for a person to read, powers of 1000: "0 B", "999 B", "1.23 GB", "45.6 MB", "789
/// kB".
[[nodiscard]] std::string readable_size(std::uint64_t bytes);
/// The two largest units, for a person to read: "3s", "2m 05s", "1h 12m", "3d 04h".
[[nodiscard]] std::string readable_duration(std::chrono::seconds time);

/// A part of something: so many bytes, or percent of the whole.
struct Share {
  std::uint64_t bytes = 0;
  unsigned percent = 0;  ///< counts where bytes is 0
  [[nodiscard]] std::uint64_t of(std::uint64_t whole) const noexcept;
  bool operator==(const Share&) const = default;
};

/// "90%" (a whole number up to 100), or as parse_size. Error(kInvalid).
[[nodiscard]] Share parse_share(std::string_view text);
/// The shortest text that parse_share reads back as the same share.
[[nodiscard]] std::string exact_share(const Share& share);

}  // namespace weightfs
