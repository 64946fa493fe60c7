// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"
#include "cli/input_check.hpp"
#include "cli/printable.hpp"
#include "control/json_codec.hpp"

#include <fmt/format.h>

namespace weightfs::cli {

namespace {

class LeaseRmCommand final : public Command {
 public:
  void declare(Options& options) override { options.argument("ID", "The lease.", id_); }

  ExitCode run(Context& context) override {
    check_lease_argument(id_);
    context.client().remove_lease(id_);
    if (context.json()) {
      context.print_json({{"id", id_}});
    } else {
      context.streams().out << fmt::format("{}: not leased any more\n", printable(id_));
    }
    return ExitCode::kDone;
  }

 private:
  std::string id_;
};

}  // namespace

CommandEntry lease_rm_command() {
  return {
      .name = "lease rm",
      .summary = "End a lease before its time",
      .text =
          "Stops fetching what only this lease wanted, and lets its models be evicted again. "
          "Nothing is removed by that alone.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<LeaseRmCommand>()); },
  };
}

}  // namespace weightfs::cli
