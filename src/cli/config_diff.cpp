// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "cli/config_diff_text.hpp"
#include "control/json_codec.hpp"

namespace weightfs::cli {

namespace {

class ConfigDiffCommand final : public Command {
 public:
  void declare(Options&) override {}

  ExitCode run(Context& context) override {
    const api::ConfigDiff diff = context.client().config_diff();
    if (context.json()) {
      context.print_json(control::to_json(diff));
    } else {
      context.streams().out << config_diff_text(diff);
    }
    return ExitCode::kDone;
  }
};

}  // namespace

CommandEntry config_diff_command() {
  return {
      .name = "config diff",
      .summary = "Show what the configuration has otherwise than the daemon that runs",
      .text =
          "The daemon reads its flags, environment and configuration file again, as 'weightfs "
          "reload' would, and says what it would do about models and tenants, and which settings "
          "would be others after a restart. Changes nothing.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<ConfigDiffCommand>()); },
  };
}

}  // namespace weightfs::cli
