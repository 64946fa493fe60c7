// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "control/json_codec.hpp"

namespace weightfs::cli {

namespace {

class ModeCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.optional_argument("MODE", "prod, off or shadow; without it, say which it is.", wanted_);
  }

  ExitCode run(Context& context) override {
    const std::string mode = wanted_.empty() ? context.client().status().mode
                                             : context.client().set_mode({.mode = wanted_}).to;
    if (context.json()) {
      control::Json json;
      json["mode"] = mode;
      context.print_json(json);
    } else {
      context.streams().out << mode << '\n';
    }
    return ExitCode::kDone;
  }

 private:
  std::string wanted_;
};

}  // namespace

CommandEntry mode_command() {
  return {
      .name = "mode",
      .summary = "Show or change the mode of the daemon",
      .text =
          "prod: the cache. off: reads stream from their sources, past the store, and nothing is "
          "recorded. shadow: as off, while 'weightfs status' tells what the cache would have kept, "
          "evicted and saved; what it has seen is forgotten when the mode changes. A change holds "
          "until the mount ends. What is open stays as it is, and what is being fetched for a "
          "reader "
          "is finished.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<ModeCommand>()); },
  };
}

}  // namespace weightfs::cli
