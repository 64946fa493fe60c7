// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "base/quantity.hpp"
#include "cli/printable.hpp"
#include "control/json_codec.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace weightfs::cli {

namespace {

void print_fact(Streams& streams, std::string_view name, std::string_view value) {
  if (!value.empty()) streams.out << fmt::format("  {:<9} {}\n", name, printable(value));
}

class WhyCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.argument("PATH", "A path under the mount point.", path_);
  }

  ExitCode run(Context& context) override {
    const api::Why why = context.client().why(absolute_path());
    if (context.json()) {
      context.print_json(control::to_json(why));
    } else {
      print(context.streams(), why);
    }
    return why.state == "absent" ? ExitCode::kNotReady : ExitCode::kDone;
  }

 private:
  [[nodiscard]] std::string absolute_path() const {
    return std::filesystem::absolute(path_).lexically_normal().string();
  }

  static void print(Streams& streams, const api::Why& why) {
    streams.out << printable(why.sentence) << '\n';
    if (!why.next_step.empty()) streams.out << printable(why.next_step) << '\n';
    print_fact(streams, "model", why.name);
    print_fact(streams, "file", why.file);
    print_fact(streams, "source", why.source);
    print_fact(streams, "revision", why.revision);
    print_fact(streams, "sha256", why.sha256);
    if (!why.name.empty()) {
      print_fact(
          streams, "local",
          fmt::format("{} of {}", readable_size(why.resident_bytes), readable_size(why.size)));
    }
    if (why.error) print_fact(streams, "error", why.error->message);
  }

  std::string path_;
};

}  // namespace

CommandEntry why_command() {
  return {
      .name = "why",
      .summary = "Say in one sentence how it stands with a path",
      .text =
          "Says whether the file is complete, being fetched, not fetched, or failed and why; what "
          "to do "
          "next; and which source, revision and digest stand behind it.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<WhyCommand>()); },
  };
}

}  // namespace weightfs::cli
