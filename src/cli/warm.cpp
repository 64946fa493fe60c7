// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "base/quantity.hpp"
#include "cli/input_check.hpp"
#include "cli/printable.hpp"
#include "cli/wait_for_model.hpp"
#include "control/json_codec.hpp"

#include <fmt/format.h>

namespace weightfs::cli {

namespace {

class WarmCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.argument("NAME", "The model.", name_);
    options.flag("--wait", "Return when every byte is verified.", wait_);
  }

  ExitCode run(Context& context) override {
    check_name_argument(name_);
    if (wait_) return wait_for_model(context, name_, std::nullopt);
    const api::Progress progress = context.client().warm(name_);
    if (context.json()) {
      context.print_json(control::to_json(progress));
    } else {
      context.streams().out << fmt::format("{}: {}, {} of {} verified\n", printable(progress.name),
                                           progress.complete ? "complete" : "fetching",
                                           readable_size(progress.verified),
                                           readable_size(progress.bytes));
    }
    return ExitCode::kDone;
  }

 private:
  std::string name_;
  bool wait_ = false;
};

}  // namespace

CommandEntry warm_command() {
  return {
      .name = "warm",
      .summary = "Fetch all of a model into the store",
      .text =
          "Starts fetching what is not in the store yet, in the background, and returns; with "
          "--wait "
          "it shows the progress and returns when every byte is verified, or with status 1 when a "
          "file cannot be had. Readers that wait for bytes go first.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<WarmCommand>()); },
  };
}

}  // namespace weightfs::cli
