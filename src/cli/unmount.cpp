// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "control/json_codec.hpp"

namespace weightfs::cli {

namespace {

class UnmountCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.flag("--lazy", "Take the mount away at once; whoever has a file open keeps it.",
                 request_.lazy);
  }

  ExitCode run(Context& context) override {
    context.client().unmount(request_);
    if (context.json()) context.print_json(control::to_json(request_));
    return ExitCode::kDone;
  }

 private:
  api::UnmountRequest request_;
};

}  // namespace

CommandEntry unmount_command() {
  return {
      .name = "unmount",
      .summary = "Unmount, and end the daemon and its keeper",
      .text = "Fails while something under the mount point is open, unless --lazy is given.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<UnmountCommand>()); },
  };
}

}  // namespace weightfs::cli
