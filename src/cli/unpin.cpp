// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "cli/input_check.hpp"
#include "cli/printable.hpp"
#include "control/json_codec.hpp"

#include <fmt/format.h>

namespace weightfs::cli {

namespace {

class UnpinCommand final : public Command {
 public:
  void declare(Options& options) override { options.argument("NAME", "The model.", name_); }

  ExitCode run(Context& context) override {
    check_name_argument(name_);
    const api::Model model = context.client().unpin(name_);
    if (context.json()) {
      context.print_json(control::to_json(model));
    } else {
      context.streams().out << fmt::format("{}: not pinned\n", printable(model.name));
    }
    return ExitCode::kDone;
  }

 private:
  std::string name_;
};

}  // namespace

CommandEntry unpin_command() {
  return {
      .name = "unpin",
      .summary = "Let a pinned model be evicted again",
      .text = "Takes the mark of 'weightfs pin' away. Nothing is removed by that alone.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<UnpinCommand>()); },
  };
}

}  // namespace weightfs::cli
