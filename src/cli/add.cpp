// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "base/quantity.hpp"
#include "cli/input_check.hpp"
#include "cli/printable.hpp"
#include "cli/progress_line.hpp"
#include "cli/source_argument.hpp"
#include "control/json_codec.hpp"

#include <fmt/format.h>

namespace weightfs::cli {

namespace {

class AddCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.argument("NAME", "Where it stands below the mount point, as org/name.", request_.name);
    options.optional_argument("SOURCE",
                              "Where the truth is: file:///DIR, https://HOST/DIR/, "
                              "https://HOST/FILE, hf://ORG/NAME; with @REVISION after it, "
                              "exactly that.",
                              source_);
    options.repeated_option(
        {"--source", "SOURCE",
         "Another source of the same files, given again for each: they are tried in order, also "
         "in the middle of a file, and take each other's place where they prove the same sha256."},
        given_.sources);
    options.repeated_option(
        {"--allow", "PATTERN",
         "Take only files that match ('*' matches '/', too), given again for each pattern."},
        given_.allow);
    options.repeated_option({"--ignore", "PATTERN", "Leave out files that match, likewise."},
                            given_.ignore);
    options.repeated_option(
        {"--part", "PART=SOURCE",
         "Instead of SOURCE, and given again for each part of a release: a PART with a '/' stands "
         "in that directory (adapters/x), any other (base, tokenizer) at the root."},
        given_.parts);
    options.repeated_option({"--overlay", "PART", "A part whose files take the place of others'."},
                            given_.overlays);
    options.option({"--expect", "SNAPSHOT_ID", "Refuse anything else."}, request_.expect);
    options.flag("--allow-missing", "Take it though a file is missing that its loader will need.",
                 request_.allow_missing);
  }

  ExitCode run(Context& context) override {
    check_name_argument(request_.name);
    if (!source_.empty()) given_.sources.insert(given_.sources.begin(), source_);
    request_.source = given_.reference();
    check_source_argument(request_.source);
    const api::Model model = add(context);
    if (context.json()) {
      context.print_json(control::to_json(model));
    } else {
      context.streams().out << fmt::format("{}: {} files, {}, revision {}\n", printable(model.name),
                                           model.file_count, readable_size(model.bytes),
                                           printable(model.revision));
    }
    return ExitCode::kDone;
  }

 private:
  api::Model add(Context& context) const {
    ProgressLine line(context.streams());
    return context.client().add(request_, [&](const api::JobProgress& progress) {
      line.update(std::chrono::steady_clock::now(), progress.stage, progress.bytes, progress.total);
    });
  }

  api::AddRequest request_;
  std::string source_;
  SourceArgument given_;
};

}  // namespace

CommandEntry add_command() {
  return {
      .name = "add",
      .summary = "Add a model: a name for what a source has",
      .text =
          "Asks the source what it has now and records that under NAME. Nothing but small metadata "
          "is "
          "fetched: files come when they are read, or with 'weightfs warm NAME'. A source that is "
          "out "
          "of reach, or that lacks a file that its loader will need (a shard of the index, "
          "config.json, a tokenizer), is not recorded.\n\n"
          "'weightfs ls --json' shows, for each revision known, the 'reference' and the 'snapshot' "
          "that give the same bytes on another node: 'weightfs add NAME REFERENCE --expect "
          "SNAPSHOT'. A REVISION is the id of a snapshot (64 hexadecimal digits), or the key of "
          "one "
          "that has no id yet. Where the source lists no digests, all of it is fetched first, to "
          "learn what it is. A name that was added with a REVISION is not updated to another.\n\n"
          "A directory behind http(s) is described by a weightfs.json beside its files ('weightfs "
          "manifest' writes it) or by a SHA256SUMS.\n\n"
          "With --part a model is a release: several sources shown as one tree with one id, which "
          "is "
          "updated, pinned, confirmed and rolled back as one. Two parts that have a file of the "
          "same "
          "path are refused, unless one of them is the --overlay.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<AddCommand>()); },
  };
}

}  // namespace weightfs::cli
