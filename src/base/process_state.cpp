// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/process_state.hpp"

#include "base/error.hpp"
#include "base/file.hpp"

#include <sstream>
#include <string>

namespace weightfs {

std::optional<ProcessState> process_state(pid_t pid) {
  if (pid <= 0) return std::nullopt;
  constexpr std::uint64_t kLongestStat = 4096;
  std::string stat;
  try {
    stat = read_file("/proc/" + std::to_string(pid) + "/stat", kLongestStat);
  } catch (const Error&) {
    return std::nullopt;
  }
  // The name, in parentheses, may hold anything; what follows the last one is in fixed places.
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string state;
  fields >> state;
  constexpr int kBetweenStateAndStart = 18;
  std::string skipped;
  for (int field = 0; field < kBetweenStateAndStart; ++field) fields >> skipped;
  ProcessState found{.main_thread_ended = state == "Z" || state == "X"};
  if (!(fields >> found.started)) return std::nullopt;
  return found;
}

}  // namespace weightfs
