// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "cli/input_check.hpp"
#include "cli/loader_warning.hpp"
#include "cli/printable.hpp"
#include "cli/progress_line.hpp"
#include "control/json_codec.hpp"

#include <fmt/format.h>

namespace weightfs::cli {

namespace {

class UpdateCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.argument("NAME", "The model.", name_);
    options.flag("--cold", "Do not fetch the new revision first.", how_.cold);
    options.flag("--allow-missing",
                 "Take the new revision though a file is missing that its loader will need.",
                 how_.allow_missing);
    options.flag("--now", "Do not wait for who is loading through the name.", how_.now);
  }

  ExitCode run(Context& context) override {
    check_name_argument(name_);
    const api::UpdateResult result = update(context);
    if (context.json()) {
      context.print_json(control::to_json(result));
    } else if (result.changed) {
      context.streams().out << fmt::format("{}: {} -> {}\n", printable(result.name),
                                           printable(result.from), printable(result.to));
      warn_of_loader(context, result);
    } else {
      context.streams().out << fmt::format("{}: unchanged at {}\n", printable(result.name),
                                           printable(result.to));
    }
    return ExitCode::kDone;
  }

 private:
  api::UpdateResult update(Context& context) const {
    ProgressLine line(context.streams());
    return context.client().update(name_, how_, [&](const api::JobProgress& progress) {
      line.update(std::chrono::steady_clock::now(), fmt::format("{}  {}", name_, progress.stage),
                  progress.bytes, progress.total);
    });
  }

  std::string name_;
  api::UpdateOptions how_;
};

}  // namespace

CommandEntry update_command() {
  return {
      .name = "update",
      .summary = "Move a model's name to what its source has now",
      .text =
          "Asks the source again. Where it has something new, all of that is fetched and verified "
          "first, and then the name shows the new revision in one step: no reader ever sees files "
          "of "
          "two revisions. The old revision stays, as NAME@REVISION. One that lacks a shard of its "
          "index, its "
          "config.json or its tokenizer is refused.\n\nWhile somebody loads through the name (has "
          "opened some of the weights, and not all, or has some open that are still being "
          "fetched), "
          "the name waits for flip_wait, and shows the new revision then; --now does not wait. An "
          "update that is interrupted "
          "here goes on in the daemon; asking again joins it.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<UpdateCommand>()); },
  };
}

}  // namespace weightfs::cli
