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
    api::Client client = context.client();
    const api::Model model = client.pin(name_, request_);
    if (context.json()) {
      context.print_json(control::to_json(model));
    } else {
      context.streams().out << fmt::format("{}: pinned{}\n", printable(model.name),
                                           model.complete ? "" : what_is_missing(client));
    }
    return ExitCode::kDone;
  }

 private:
  // A daemon that keeps nothing pins all the same: for the next one, which may.
  std::string what_is_missing(api::Client& client) const {
    const api::Progress progress = client.progress(name_);
    if (progress.complete) return "";
    if (progress.running) return ", fetching what is missing";
    return fmt::format(", but what is missing is not being fetched: 'weightfs warm {}' says why",
                       printable(name_));
  }

  std::string name_;
  api::PinRequest request_;
};

}  // namespace

CommandEntry pin_command() {
  return {
      .name = "pin",
      .summary = "Keep a model in the store, whatever else needs the room",
      .text =
          "Marks the model as never to be evicted and fetches what is missing of it, where "
          "anything is kept.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<PinCommand>()); },
  };
}

}  // namespace weightfs::cli
