// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "cli/command_line.hpp"
#include "cli/man_page.hpp"

namespace weightfs::cli {

namespace {

class ManCommand final : public Command {
 public:
  void declare(Options&) override {}

  ExitCode run(Context& context) override {
    context.streams().out << man_page(CommandLine(command_table()).pages());
    return ExitCode::kDone;
  }
};

}  // namespace

CommandEntry man_command() {
  return {
      .name = "man",
      .summary = "Print the manual page",
      .text = "The source of man/weightfs.1.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<ManCommand>()); },
      .visibility = Visibility::kHidden,
  };
}

}  // namespace weightfs::cli
