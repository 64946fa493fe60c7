// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <span>
#include <string>
#include <vector>

namespace weightfs::cli {

struct PlotSeries {
  std::string name;
  char mark = '*';
  std::vector<double> rates;  ///< from 0 to 1, one for each capacity
};

/// Rates over capacities as text of at most so many columns, 40 at least: a group of marks for each
/// capacity, at equal distances, and a legend. Series that meet stand side by side as far as there
/// is room. Pure.
[[nodiscard]] std::string replay_plot(std::span<const std::string> capacities,
                                      std::span<const PlotSeries> series, unsigned columns);

}  // namespace weightfs::cli
