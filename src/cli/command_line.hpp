// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cli/command.hpp"
#include "cli/command_page.hpp"
#include "cli/streams.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace weightfs::cli {

/// The parser of the whole command line, built from a table of commands. Used once, by one thread.
class CommandLine {
 public:
  explicit CommandLine(std::span<const CommandEntry> table);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine();

  /// Parses (without the program's name) and runs. Prints help, version and every error.
  [[nodiscard]] ExitCode run(std::span<const std::string> arguments, Streams& streams,
                             const Environment& environment);

  /// The program, then each command that is shown, in the order of the table.
  [[nodiscard]] std::vector<CommandPage> pages() const;

 private:
  class Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace weightfs::cli
