// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "policy/csv_rows.hpp"
#include "policy/trace_builder.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weightfs::policy {

/// Makes a trace of the bytes of a file, whichever way they are cut into pieces: a CSV with names
/// of columns in its first line, a log of events (JSON lines), or libCacheSim's oracleGeneral. Its
/// first bytes say which it is. Confined to one thread.
class TraceParser {
 public:
  /// A longer line is no line of a trace: Error(kInvalid).
  static constexpr std::size_t kLongestLine = 1 << 20;

  explicit TraceParser(CsvColumns columns) : columns_(std::move(columns)) {}

  /// Error(kInvalid) where it cannot be a trace, or lacks a column.
  void feed(std::string_view bytes);
  [[nodiscard]] Trace finish() &&;

 private:
  enum class Format { kUnknown, kCsv, kEvents, kOracle };

  [[nodiscard]] static Format format_of(std::string_view beginning);
  /// Reads what is whole of `bytes`; returns the rest.
  [[nodiscard]] std::string_view read(std::string_view bytes);
  [[nodiscard]] std::string_view read_lines(std::string_view bytes);
  [[nodiscard]] std::string_view read_records(std::string_view bytes);
  void read_line(std::string_view line);

  CsvColumns columns_;
  Format format_ = Format::kUnknown;
  std::string rest_;  ///< a line or record that has begun
  std::uint64_t number_ = 0;
  std::optional<CsvRows> csv_;
  TraceBuilder trace_;
};

}  // namespace weightfs::policy
