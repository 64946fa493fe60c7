// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cli/streams.hpp"

#include <string>
#include <vector>

namespace weightfs::cli {

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kLeft;
};

/// Rows of text: with a header and aligned on a terminal, else one line each with tabs between, for
/// other programs. Confined to one thread.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// One cell per column; made printable.
  void add(const std::vector<std::string>& cells);
  void print(Streams& streams) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace weightfs::cli
