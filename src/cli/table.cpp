// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/table.hpp"

#include "cli/printable.hpp"

#include <algorithm>
#include <string_view>

namespace weightfs::cli {

void Table::add(const std::vector<std::string>& cells) {
  auto& row = rows_.emplace_back();
  for (const std::string& cell : cells) row.push_back(printable(cell));
}

void Table::print(Streams& streams) const {
  if (!streams.out_is_terminal) {
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) streams.out << (i == 0 ? "" : "\t") << row[i];
      streams.out << '\n';
    }
    return;
  }
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    widths.push_back(width_of(columns_[i].title));
    for (const auto& row : rows_) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  const auto line = [&](auto&& cell) {
    std::string text;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string_view content = cell(i);
      const std::string space(widths[i] - width_of(content), ' ');
      if (columns_[i].align == Align::kRight) text += space;
      text += content;
      if (columns_[i].align == Align::kLeft) text += space;
      text += "  ";
    }
    text.erase(text.find_last_not_of(' ') + 1);
    streams.out << text << '\n';
  };
  line([&](std::size_t i) -> std::string_view { return columns_[i].title; });
  for (const auto& row : rows_) line([&](std::size_t i) -> std::string_view { return row[i]; });
}

}  // namespace weightfs::cli
