// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "policy/trace_builder.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weightfs::policy {

/// Which columns of a CSV are what, as a person says it: NAME, or NAME:UNIT for time (s, ms, us,
/// ns) and size (B, MB, GiB, ...). Without a unit the column's ending says it (ts_ms, disk_gib),
/// else it is seconds and bytes. Empty: the column is guessed from the usual names.
struct CsvColumns {
  std::string time;
  std::string artifact;
  std::string consumer;
  std::string node;
  std::string size;
};

/// The rows of a CSV file (RFC 4180, without line breaks inside of fields), parted by comma,
/// semicolon or tab, whichever its first line has most of. That line names the columns. Confined to
/// one thread.
class CsvRows {
 public:
  /// `header` is the first line. Error(kInvalid) where a column that was named is not there, or
  /// none is the artifact.
  CsvRows(std::string_view header, const CsvColumns& columns);

  /// One line, without its end; a row is added or skipped. An empty line is nothing.
  void read(std::string_view line, std::uint64_t number, TraceBuilder& trace);

 private:
  struct Field {
    std::size_t place = 0;
    double unit = 1;  ///< milliseconds or bytes
  };
  /// What is to be known to find a column.
  struct Kind;
  static const Kind kTime, kArtifact, kConsumer, kNode, kSize;

  [[nodiscard]] std::optional<Field> find(const Kind& kind, const std::string& given) const;
  void split(std::string_view line);
  [[nodiscard]] std::string shown_columns() const;
  [[nodiscard]] std::string_view cell(const Field& field) const { return cells_[field.place]; }

  char separator_ = ',';
  std::vector<std::string> cells_;  ///< of the line being read, in strings that are used again
  std::size_t count_ = 0;           ///< of them
  std::optional<Field> time_;
  std::optional<Field> artifact_;
  std::optional<Field> consumer_;
  std::optional<Field> node_;
  std::optional<Field> size_;
  std::size_t least_ = 0;  ///< cells that a row must have
};

}  // namespace weightfs::policy
