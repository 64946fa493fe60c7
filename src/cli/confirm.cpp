// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "cli/input_check.hpp"
#include "cli/printable.hpp"
#include "control/json_codec.hpp"

#include <fmt/format.h>

namespace weightfs::cli {

namespace {

class ConfirmCommand final : public Command {
 public:
  void declare(Options& options) override { options.argument("NAME", "The model.", name_); }

  ExitCode run(Context& context) override {
    check_name_argument(name_);
    const api::Model model = context.client().confirm(name_);
    if (context.json()) {
      context.print_json(control::to_json(model));
    } else {
      context.streams().out << fmt::format("{}: rolls back to {} from now on\n",
                                           printable(model.name), printable(model.revision));
    }
    return ExitCode::kDone;
  }

 private:
  std::string name_;
};

}  // namespace

CommandEntry confirm_command() {
  return {
      .name = "confirm",
      .summary = "Make what a model shows now the revision to roll back to",
      .text =
          "Until then, however often it is updated, 'weightfs rollback' goes back to what was "
          "confirmed "
          "before, or, where nothing was, to what the name showed first. That revision is not "
          "evicted within rollback_window of an update. With confirm_after in the configuration, a "
          "revision that stays for that long is confirmed by itself.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<ConfirmCommand>()); },
  };
}

}  // namespace weightfs::cli
