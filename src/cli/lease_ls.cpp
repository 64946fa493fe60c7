// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"
#include "cli/lease_text.hpp"
#include "cli/table.hpp"
#include "control/json_codec.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weightfs::cli {

namespace {

class LeaseLsCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.optional_argument("ID", "Only this lease.", id_);
  }

  ExitCode run(Context& context) override {
    const std::vector<api::Lease> leases =
        id_.empty() ? context.client().leases() : std::vector{context.client().lease(id_)};
    if (context.json()) {
      control::Json json;
      json["leases"] = control::to_json(leases);
      context.print_json(json);
      return ExitCode::kDone;
    }
    Table table({{"ID"}, {"FROM"}, {"UNTIL"}, {"STATE"}, {"ARTIFACTS"}, {"OWNER"}});
    for (const api::Lease& lease : leases) {
      table.add({lease.id, lease.not_before, lease.until, lease_state(lease),
                 fmt::format("{}", fmt::join(lease.artifacts, " ")), lease.owner});
    }
    table.print(context.streams());
    return ExitCode::kDone;
  }

 private:
  std::string id_;
};

}  // namespace

CommandEntry lease_ls_command() {
  return {
      .name = "lease ls",
      .summary = "List the leases, and whether what they want is there",
      .text =
          "Shows for each lease from when and until when it holds, for whom, and how much is "
          "missing "
          "of it. "
          "'late' is one that is not complete though its job may have begun, 'at risk' one that "
          "will not be complete in time as things go.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<LeaseLsCommand>()); },
  };
}

}  // namespace weightfs::cli
