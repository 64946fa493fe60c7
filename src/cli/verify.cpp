// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "base/quantity.hpp"
#include "cli/input_check.hpp"
#include "cli/printable.hpp"
#include "cli/progress_line.hpp"
#include "control/json_codec.hpp"

#include <fmt/format.h>

namespace weightfs::cli {

namespace {

class VerifyCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.optional_argument("NAME", "A model; without it, everything in the store.", name_);
  }

  ExitCode run(Context& context) override {
    if (!name_.empty()) check_name_argument(name_);
    const api::VerifyResult result = verify(context);
    if (context.json()) {
      context.print_json(control::to_json(result));
    } else {
      print(context.streams(), result);
    }
    return result.corrupt.empty() ? ExitCode::kDone : ExitCode::kFailed;
  }

 private:
  api::VerifyResult verify(Context& context) const {
    ProgressLine line(context.streams());
    return context.client().verify(name_, [&](const api::JobProgress& progress) {
      line.update(std::chrono::steady_clock::now(), progress.stage, progress.bytes, progress.total);
    });
  }

  static void print(Streams& streams, const api::VerifyResult& result) {
    for (const api::CorruptBlob& blob : result.corrupt) {
      streams.err << fmt::format("weightfs: corrupt, in quarantine now: {}\n", blob.sha256);
      for (const std::string& file : blob.files) {
        streams.err << fmt::format("  {}\n", printable(file));
      }
    }
    streams.out << fmt::format("{} files, {} verified; {} corrupt\n", result.blobs,
                               readable_size(result.bytes), result.corrupt.size());
  }

  std::string name_;
};

}  // namespace

CommandEntry verify_command() {
  return {
      .name = "verify",
      .summary = "Hash what is in the store again",
      .text =
          "Reads the files of NAME, or of the whole store, from the disk and compares their "
          "sha256. One "
          "that is not what it should be goes to quarantine, is fetched again when it is opened "
          "next, "
          "and makes the exit status 1.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<VerifyCommand>()); },
  };
}

}  // namespace weightfs::cli
