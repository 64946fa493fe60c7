// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "cli/input_check.hpp"
#include "cli/printable.hpp"
#include "control/json_codec.hpp"

#include <fmt/format.h>

namespace weightfs::cli {

namespace {

class PinCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.argument("NAME", "The model.", name_);
    options.option({"--reason", "TEXT", "Why, for whoever wonders later."}, request_.reason);
  }

  ExitCode run(Context& context) override {
    check_name_argument(name_);
    const api::Model model = context.client().pin(name_, request_);
    if (context.json()) {
      context.print_json(control::to_json(model));
    } else {
      context.streams().out << fmt::format("{}: pinned{}\n", printable(model.name),
                                           model.complete ? "" : ", fetching what is missing");
    }
    return ExitCode::kDone;
  }

 private:
  std::string name_;
  api::PinRequest request_;
};

}  // namespace

CommandEntry pin_command() {
  return {
      .name = "pin",
      .summary = "Keep a model in the store, whatever else needs the room",
      .text = "Marks the model as never to be evicted and fetches what is missing of it.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<PinCommand>()); },
  };
}

}  // namespace weightfs::cli
