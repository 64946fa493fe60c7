// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "cli/freed_text.hpp"
#include "cli/input_check.hpp"

namespace weightfs::cli {

namespace {

class EvictCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.argument("NAME", "The model.", name_);
    options.flag("--dry-run", "Only say what would be removed.", options_.dry_run);
    options.flag("--shared", "Also what other models have, but for pinned ones.", options_.shared);
  }

  ExitCode run(Context& context) override {
    check_name_argument(name_);
    print_freed(context, context.client().evict(name_, options_), "evict", "evicted");
    return ExitCode::kDone;
  }

 private:
  std::string name_;
  api::EvictOptions options_;
};

}  // namespace

CommandEntry evict_command() {
  return {
      .name = "evict",
      .summary = "Remove a model's files from the store, not its name",
      .text =
          "Removes the files of the current revision from the store, but for those that another "
          "model has as well. Of two models with the same files neither gives them up, unless with "
          "--shared: then only what a pinned model has stays. The name stays, and the next read "
          "fetches from the source again. Whoever has a file open keeps it until it is closed. A "
          "pinned model must be unpinned first.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<EvictCommand>()); },
  };
}

}  // namespace weightfs::cli
