// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "cli/freed_text.hpp"
#include "cli/input_check.hpp"
#include "control/json_codec.hpp"

namespace weightfs::cli {

namespace {

class EvictCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.argument("NAME", "The model.", name_);
    options.flag("--dry-run", "Only say what would be removed.", dry_run_);
  }

  ExitCode run(Context& context) override {
    check_name_argument(name_);
    const api::Freed freed = context.client().evict(name_, dry_run_);
    if (context.json()) {
      context.print_json(control::to_json(freed));
    } else {
      context.streams().out << freed_text(freed, "evict", "evicted") << '\n';
    }
    return ExitCode::kDone;
  }

 private:
  std::string name_;
  bool dry_run_ = false;
};

}  // namespace

CommandEntry evict_command() {
  return {
      .name = "evict",
      .summary = "Remove a model's files from the store, not its name",
      .text =
          "Removes the files of the current revision from the store, but for those that a pinned "
          "model "
          "has as well. The name stays, and the next read fetches from the source again. Whoever "
          "has a "
          "file open keeps it until it is closed. A pinned model must be unpinned first.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<EvictCommand>()); },
  };
}

}  // namespace weightfs::cli
