// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "cli/freed_text.hpp"
#include "cli/input_check.hpp"

namespace weightfs::cli {

namespace {

class RmCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.argument("NAME", "The model.", name_);
    options.flag("--dry-run", "Only say what would be removed.", dry_run_);
  }

  ExitCode run(Context& context) override {
    check_name_argument(name_);
    print_freed(context, context.client().remove(name_, dry_run_), "remove", "removed");
    return ExitCode::kDone;
  }

 private:
  std::string name_;
  bool dry_run_ = false;
};

}  // namespace

CommandEntry rm_command() {
  return {
      .name = "rm",
      .summary = "Remove a model's name and the bytes that only it had",
      .text =
          "Removes the name with all its revisions. Files in the store that no other model has go "
          "with "
          "it; whoever has one open keeps it until it is closed. The source is not touched. A "
          "pinned "
          "model must be unpinned first.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<RmCommand>()); },
  };
}

}  // namespace weightfs::cli
