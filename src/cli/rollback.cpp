// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "cli/input_check.hpp"
#include "cli/loader_warning.hpp"
#include "cli/printable.hpp"
#include "control/json_codec.hpp"

#include <fmt/format.h>

namespace weightfs::cli {

namespace {

class RollbackCommand final : public Command {
 public:
  void declare(Options& options) override { options.argument("NAME", "The model.", name_); }

  ExitCode run(Context& context) override {
    check_name_argument(name_);
    const api::UpdateResult result = context.client().rollback(name_);
    if (context.json()) {
      context.print_json(control::to_json(result));
    } else {
      context.streams().out << fmt::format("{}: {} -> {}\n", printable(result.name),
                                           printable(result.from), printable(result.to));
      warn_of_loader(context, result);
    }
    return ExitCode::kDone;
  }

 private:
  std::string name_;
};

}  // namespace

CommandEntry rollback_command() {
  return {
      .name = "rollback",
      .summary = "Show a model's last confirmed revision again",
      .text =
          "In one step, at once and without asking its source. Readers keep what they have open. "
          "Where "
          "'weightfs ls' says cold, not all of that revision is in the store, and its source is "
          "asked "
          "for the rest as it is read. The next 'weightfs update' asks the source again.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<RollbackCommand>()); },
  };
}

}  // namespace weightfs::cli
