// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "cli/status_text.hpp"
#include "control/json_codec.hpp"

namespace weightfs::cli {

namespace {

class StatusCommand final : public Command {
 public:
  void declare(Options&) override {}

  ExitCode run(Context& context) override {
    const api::Status status = context.client().status();
    if (context.json()) {
      context.print_json(control::to_json(status));
    } else {
      context.streams().out << status_text(status);
    }
    return ExitCode::kDone;
  }
};

}  // namespace

CommandEntry status_command() {
  return {
      .name = "status",
      .summary = "Show how the daemon, the mount and the store are doing",
      .text =
          "Shows the processes, the mount and whether the kernel reads complete files by itself "
          "(passthrough), what is in the store, hits and misses, what came from the sources, and "
          "the "
          "files that are being fetched. A hit is the open of a complete file, counted once per "
          "consumer and file; a miss is the open of one that was not.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<StatusCommand>()); },
  };
}

}  // namespace weightfs::cli
