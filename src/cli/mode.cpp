// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "control/json_codec.hpp"

namespace weightfs::cli {

namespace {

class ModeCommand final : public Command {
 public:
  void declare(Options&) override {}

  ExitCode run(Context& context) override {
    const std::string mode = context.client().status().mode;
    if (context.json()) {
      control::Json json;
      json["mode"] = mode;
      context.print_json(json);
    } else {
      context.streams().out << mode << '\n';
    }
    return ExitCode::kDone;
  }
};

}  // namespace

CommandEntry mode_command() {
  return {
      .name = "mode",
      .summary = "Show the mode of the daemon",
      .text = "Prints prod, off or shadow.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<ModeCommand>()); },
  };
}

}  // namespace weightfs::cli
