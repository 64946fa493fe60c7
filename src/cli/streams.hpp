// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <map>
#include <ostream>
#include <string>

namespace weightfs::cli {

/// Where a command prints, and what stands behind it. Tables and progress only go to a terminal.
struct Streams {
  std::ostream& out;
  std::ostream& err;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  unsigned columns = 80;  ///< of the terminal
};

using Environment = std::map<std::string, std::string>;

}  // namespace weightfs::cli
