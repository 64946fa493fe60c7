// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "base/quantity.hpp"
#include "cli/input_check.hpp"
#include "cli/printable.hpp"
#include "control/json_codec.hpp"

#include <fmt/format.h>

#include <limits>

namespace weightfs::cli {

namespace {

class PruneCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.optional_argument("NAME", "Only of this model.", name_);
    options.number({"--keep", "N", "Leave so many old revisions of each model, the newest."}, keep_,
                   0, std::numeric_limits<unsigned>::max());
    options.flag("--dry-run", "Only say what would be removed.", dry_run_);
  }

  ExitCode run(Context& context) override {
    if (!name_.empty()) check_name_argument(name_);
    const api::Pruned pruned = context.client().prune(name_, {.keep = keep_, .dry_run = dry_run_});
    if (context.json()) {
      context.print_json(control::to_json(pruned));
    } else {
      print(context.streams().out, pruned);
    }
    return ExitCode::kDone;
  }

 private:
  static void print(std::ostream& out, const api::Pruned& pruned) {
    for (const api::OldRevision& old : pruned.removed) {
      out << fmt::format("{}@{}: {}\n", printable(old.name), printable(old.revision),
                         pruned.dry_run ? "would be removed" : "removed");
    }
    for (const api::OldRevision& old : pruned.kept) {
      out << fmt::format("{}@{}: stays, {}\n", printable(old.name), printable(old.revision),
                         printable(old.kept));
    }
    out << fmt::format("{} {}, {} {}\n", pruned.blobs, pruned.blobs == 1 ? "file" : "files",
                       readable_size(pruned.bytes), pruned.dry_run ? "would be freed" : "freed");
  }

  std::string name_;
  unsigned keep_ = 0;
  bool dry_run_ = false;
};

}  // namespace

CommandEntry prune_command() {
  return {
      .name = "prune",
      .summary = "Remove revisions that no name shows any more",
      .text =
          "Forgets what NAME, or every model, showed before, and removes the files that nothing "
          "else "
          "has from the store: NAME@REVISION is gone then. What stays is listed with the reason: "
          "the "
          "revision that a name is rolled back to (confirmed), one that another name shows, has "
          "open "
          "files, is being fetched, or is one of the newest that --keep asks for.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<PruneCommand>()); },
  };
}

}  // namespace weightfs::cli
