// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "cli/config_diff_text.hpp"
#include "control/json_codec.hpp"

#include <algorithm>
#include <optional>
#include <string>

namespace weightfs::cli {

namespace {

class ReloadCommand final : public Command {
 public:
  void declare(Options&) override {}

  ExitCode run(Context& context) override {
    const api::ConfigDiff diff = context.client().reload();
    if (context.json()) {
      context.print_json(control::to_json(diff));
    } else {
      context.streams().out << config_diff_text(diff);
    }
    return outcome(diff);
  }

 private:
  static ExitCode outcome(const api::ConfigDiff& diff) {
    const auto any = [&](const char* outcome) {
      return std::ranges::find(diff.models, std::optional<std::string>(outcome),
                               &api::ModelDiff::outcome) != diff.models.end();
    };
    if (any("refused")) return ExitCode::kFailed;
    return any("deferred") ? ExitCode::kNotReady : ExitCode::kDone;
  }
};

}  // namespace

CommandEntry reload_command() {
  return {
      .name = "reload",
      .summary = "Have the daemon read its configuration again",
      .text =
          "Models of the configuration file that are new are added, those that have another source "
          "come from there, those that are gone are removed once nobody reads them; pins and "
          "tenants are made what it says, and fill_bandwidth and write_bandwidth hold from now on. "
          "Models that were added by hand stay. Other settings are in effect after a restart of "
          "the daemon. Prints what differed, and for each model what became of it: 'applied'; "
          "'deferred', with the reason, which goes on by itself, as when somebody reads it or its "
          "source is slow or out of reach, and ends this command with 3; 'refused', with the "
          "reason, which ends it with 1. A configuration with a mistake changes nothing. The "
          "daemon, and the keeper that runs it, do the same upon SIGHUP.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<ReloadCommand>()); },
  };
}

}  // namespace weightfs::cli
