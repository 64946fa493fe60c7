// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/error.hpp"
#include "cli/commands.hpp"
#include "cli/setting_flags.hpp"

#include <CLI/CLI.hpp>

namespace weightfs::cli {

namespace {

/// Holds the place of the commands that start processes until they have files of their own.
class ProcessCommand final : public Command {
 public:
  void declare(CLI::App& app) override { flags_.declare(app); }

  ExitCode run(Context&) override {
    throw Error(Errc::kUnsupported, "this build cannot start a keeper or a daemon");
  }

 private:
  SettingFlags flags_;
};

std::unique_ptr<Command> make_process_command() {
  return std::make_unique<ProcessCommand>();
}

}  // namespace

CommandEntry mount_command() {
  return {.name = "mount",
          .summary = "Mount, and serve until unmounted",
          .text = "Starts a keeper and a daemon.",
          .make = make_process_command};
}

CommandEntry keeper_command() {
  return {.name = "keeper",
          .summary = "Run the keeper alone",
          .text = "Mounts and holds the session for daemons that come and go.",
          .make = make_process_command};
}

CommandEntry daemon_command() {
  return {.name = "daemon",
          .summary = "Run the daemon alone",
          .text = "Serves the mount of a keeper.",
          .make = make_process_command};
}

}  // namespace weightfs::cli
