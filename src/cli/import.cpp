// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "base/quantity.hpp"
#include "cli/input_check.hpp"
#include "cli/printable.hpp"
#include "cli/progress_line.hpp"
#include "control/json_codec.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>

namespace weightfs::cli {

namespace {

class ImportCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.argument("DIR", "Where the files lie, on the node.", request_.directory);
    options.optional_arguments("NAME", "Only for these models; without any, for all.",
                               request_.names);
    options.flag("--link", "Make hard links, neither reflinks nor copies.", request_.link);
    options.flag("--dry-run", "Only say what would be taken.", request_.dry_run);
  }

  ExitCode run(Context& context) override {
    for (const std::string& name : request_.names) check_name_argument(name);
    request_.directory = std::filesystem::absolute(request_.directory).lexically_normal().string();
    const api::ImportResult result = import_files(context);
    if (context.json()) {
      context.print_json(control::to_json(result));
    } else {
      print(context.streams(), result);
    }
    return result.failed.files == 0 && result.mismatched.files == 0 ? ExitCode::kDone
                                                                    : ExitCode::kFailed;
  }

 private:
  api::ImportResult import_files(Context& context) const {
    ProgressLine line(context.streams());
    return context.client().import_files(request_, [&](const api::JobProgress& progress) {
      line.update(std::chrono::steady_clock::now(), progress.stage, progress.bytes, progress.total);
    });
  }

  static std::string counted(const api::FileCount& count) {
    return fmt::format("{} {}, {}", count.files, count.files == 1 ? "file" : "files",
                       readable_size(count.bytes));
  }

  static void print(Streams& streams, const api::ImportResult& result) {
    for (const api::ImportFault& fault : result.faults) {
      streams.err << fmt::format("weightfs: {}: {}\n", printable(fault.path),
                                 printable(fault.message));
    }
    std::ostream& out = streams.out;
    if (result.dry_run) {
      for (const api::ImportedFile& file : result.files) {
        out << fmt::format("{} for {}\n", printable(file.path), printable(file.file));
      }
    }
    out << fmt::format("{}: {}\n", result.dry_run ? "would be taken" : "taken",
                       counted(result.taken));
    const auto line = [&](std::string_view what, const api::FileCount& count) {
      if (count.files > 0) out << fmt::format("  {}: {}\n", what, counted(count));
    };
    line("reflinked", result.reflinked);
    line("linked", result.linked);
    line("copied", result.copied);
    line("there already", result.present);
    line("of no model", result.unknown);
    line("left to who is fetching them", result.fetching);
    line("not what their names say", result.mismatched);
    line("not taken", result.failed);
    if (result.without_digest > 0) {
      out << fmt::format("  files of models without a sha256, which cannot be found: {}\n",
                         result.without_digest);
    }
  }

  api::ImportRequest request_;
};

}  // namespace

CommandEntry import_command() {
  return {
      .name = "import",
      .summary = "Take what is on the node already into the store",
      .text =
          "Looks in DIR (the cache of the Hub's own tools, a tree that was copied, the store of "
          "Ollama; names do not matter) for files that a model has and the store lacks, and takes "
          "them into the store without asking the source for them. Add the models first. A file "
          "is what its sha256 says: it is read once to find out, and hashed again as it is in the "
          "store. It comes by reflink, which takes no space, where DIR and the store share a "
          "filesystem that can, and else as a copy. DIR stays as it is.\n\n"
          "What is taken is what the models show and would be rolled back to, and what is leased. "
          "Room is made as for 'weightfs warm'. Files that somebody is fetching just then are left "
          "to him, files whose source lists no sha256 are not found, and links that lead out of "
          "DIR are not followed. The daemon reads the files: its user must be able to. The exit "
          "status is 1 where something could not be read or taken, or is not the sha256 that its "
          "name says.\n\n"
          "With --link a file in the store is another name of the one in DIR. That takes the same "
          "filesystem, and a file that belongs to the daemon's user and is not open for writing; "
          "it is made read-only. Who changes it all the same changes what readers have open; the "
          "store finds out at the next open, and fetches it again.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<ImportCommand>()); },
  };
}

}  // namespace weightfs::cli
