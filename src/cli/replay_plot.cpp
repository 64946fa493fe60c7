// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/replay_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace weightfs::cli {

namespace {

constexpr std::size_t kAxis = 7;  // columns of "100.0% ", before the line
constexpr std::size_t kRows = 16;

/// The rates from the bottom row to the top one, both whole steps of 5 %.
struct Range {
  double bottom = 0;
  double top = 1;

  [[nodiscard]] std::size_t row(double rate) const {
    return static_cast<std::size_t>(std::lround((rate - bottom) / (top - bottom) * kRows));
  }
  [[nodiscard]] double rate(std::size_t row) const {
    return bottom + (top - bottom) * static_cast<double>(row) / kRows;
  }
};

Range range_of(std::span<const PlotSeries> series) {
  constexpr double kStep = 0.05;
  double least = 1;
  double most = 0;
  for (const PlotSeries& one : series) {
    for (const double rate : one.rates) {
      least = std::min(least, rate);
      most = std::max(most, rate);
    }
  }
  Range range{.bottom = std::floor(std::min(least, most) / kStep) * kStep,
              .top = std::ceil(most / kStep) * kStep};
  if (range.top - range.bottom < kStep) range.top = range.bottom + kStep;
  return range;
}

/// The labels below the axis, left out where they would run into the one before.
std::string labels(std::span<const std::string> texts, std::size_t distance, std::size_t width) {
  std::string line(width, ' ');
  std::size_t used = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string& text = texts[i];
    const std::size_t middle = i * distance + distance / 2;
    const std::size_t begin = middle - std::min(middle, text.size() / 2);
    if (begin < used || begin + text.size() > width) continue;
    line.replace(begin, text.size(), text);
    used = begin + text.size() + 1;
  }
  return line;
}

void add_line(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + '\n';
}

}  // namespace

std::string replay_plot(std::span<const std::string> capacities, std::span<const PlotSeries> series,
                        unsigned columns) {
  const std::size_t space = std::max(columns, 40U) - kAxis - 1;
  const std::size_t distance =
      std::clamp<std::size_t>(space / std::max<std::size_t>(capacities.size(), 1), 1, 10);
  const std::size_t width = std::min(space, distance * capacities.size());
  const Range range = range_of(series);

  std::vector<std::string> rows(kRows + 1, std::string(width, ' '));
  for (const PlotSeries& one : series) {
    for (std::size_t i = 0; i < one.rates.size(); ++i) {
      const std::string_view group = std::string_view(rows[range.row(one.rates[i])])
                                         .substr(std::min(i * distance, width), distance);
      const std::size_t place = group.find(' ', group.size() / 2);
      if (place == std::string_view::npos) continue;
      rows[range.row(one.rates[i])][i * distance + place] = one.mark;
    }
  }
  std::string out;
  for (std::size_t row = kRows + 1; row-- > 0;) {
    const std::string axis = row % 4 == 0 ? fmt::format("{:5.1f}% |", range.rate(row) * 100)
                                          : std::string(kAxis, ' ') + "|";
    add_line(out, axis + rows[row]);
  }
  add_line(out, std::string(kAxis, ' ') + '+' + std::string(width, '-'));
  add_line(out, std::string(kAxis + 1, ' ') + labels(capacities, distance, width));
  std::string legend;
  for (const PlotSeries& one : series) legend += fmt::format("  {} {}", one.mark, one.name);
  add_line(out, std::string(kAxis - 1, ' ') + legend);
  return out;
}

}  // namespace weightfs::cli
