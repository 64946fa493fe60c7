// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/command_line.hpp"

#include "base/error.hpp"
#include "base/version.hpp"
#include "cli/nearest.hpp"
#include "cli/printable.hpp"
#include "weightfs/client.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <map>
#include <utility>

namespace weightfs::cli {

namespace {

constexpr const char* kDescription =
    "Model weights as files, at the speed of the local disk\n\n"
    "weightfs shows model snapshots as read-only directories. Files come from a content-addressed "
    "store on a local disk; what is not there yet is fetched from its source in parallel ranges, "
    "verified and kept. The commands below, but for mount, keeper, daemon, manifest, replay "
    "and config, talk to the daemon of this machine.\n\n"
    "Every setting can stand in the configuration file (/etc/weightfs/config.json), in a variable "
    "WEIGHTFS_NAME, or in a flag; the later ones of these win. Sizes are written as 500GB or "
    "10GiB, "
    "durations as 30s, 12h or 2m30s.\n\n"
    "Exit status: 0 done; 1 failed; 2 wrong usage; 3 not ready or not found; 4 no daemon can be "
    "reached, or it has not answered for 20 seconds (rm, evict and unmount: two minutes).";

std::string description_of(const CommandEntry& entry) {
  return fmt::format("{}\n\n{}", entry.summary, entry.text);
}

void add_common_options(CLI::App& app, CommonOptions& options) {
  const std::string group(kCommonGroup);
  app.add_option("--socket", options.socket, "Control socket of the daemon.")
      ->type_name("PATH")
      ->group(group);
  app.add_option("--config", options.config, "Configuration file.")
      ->type_name("PATH")
      ->group(group);
  app.add_flag("--json", options.json, "Print JSON.")->group(group);
  app.set_help_flag("-h,--help", "Print this help.")->group(group);
}

}  // namespace

class CommandLine::Parser {
 public:
  explicit Parser(std::span<const CommandEntry> table) : app_(kDescription, "weightfs") {
    add_common_options(app_, options_);
    app_.set_version_flag("--version", fmt::format("weightfs {}", kVersion), "Print the version.")
        ->group(std::string(kCommonGroup));
    app_.require_subcommand(0, 1);
    for (const CommandEntry& entry : table) add(entry);
  }

  ExitCode run(std::span<const std::string> arguments, Streams& streams,
               const Environment& environment) {
    streams_ = &streams;
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    try {
      app_.parse(reversed);
    } catch (const CLI::CallForHelp&) {
      streams.out << help_text(describe(asked_about()), streams.columns);
      return ExitCode::kDone;
    } catch (const CLI::CallForVersion& version) {
      streams.out << version.what() << '\n';
      return ExitCode::kDone;
    } catch (const CLI::ParseError& error) {
      return wrong_usage(complaint(error));
    }
    for (const auto& [app, command] : commands_) {
      if (app->parsed()) {
        Context context(streams, environment, options_);
        return run(*command, context);
      }
    }
    // No command was named: say what there is.
    streams.err << help_text(describe(asked_about()), streams.columns);
    return ExitCode::kUsage;
  }

  [[nodiscard]] std::vector<CommandPage> pages() const {
    std::vector<CommandPage> all{describe(app_)};
    for (const auto& [app, command] : commands_) {
      if (!app->get_group().empty()) all.push_back(describe(*app));
    }
    return all;
  }

 private:
  void add(const CommandEntry& entry) {
    CLI::App* parent = &app_;
    std::string name(entry.name);
    if (const auto space = name.find(' '); space != std::string::npos) {
      parent = group(name.substr(0, space));
      name = name.substr(space + 1);
    }
    CLI::App* app = parent->add_subcommand(name, description_of(entry));
    if (entry.visibility == Visibility::kHidden) app->group("");
    auto command = entry.make();
    Options options(*app);
    command->declare(options);
    add_common_options(*app, options_);
    commands_.emplace_back(app, std::move(command));
  }

  CLI::App* group(const std::string& name) {
    CLI::App*& app = groups_[name];
    if (app == nullptr) {
      app = app_.add_subcommand(name, fmt::format("Commands about {}", name));
      app->require_subcommand(0, 1);
      add_common_options(*app, options_);
    }
    return app;
  }

  /// The innermost command that was named.
  const CLI::App& asked_about() const {
    const CLI::App* app = &app_;
    for (;;) {
      const auto parsed = app->get_subcommands();
      if (parsed.empty()) return *app;
      app = parsed.front();
    }
  }

  /// What is wrong where a command should have been named.
  std::string complaint(const CLI::ParseError& error) const {
    const CLI::App& group = asked_about();
    const auto unknown = group.remaining();
    std::vector<std::string> names;
    for (const CLI::App* command : group.get_subcommands({})) {
      if (!command->get_name().empty()) names.push_back(command->get_name());
    }
    if (names.empty() || unknown.empty() || unknown.front().starts_with('-')) return error.what();
    const std::vector<std::string_view> known(names.begin(), names.end());
    const std::string_view meant = nearest(unknown.front(), known);
    return meant.empty() ? fmt::format("there is no command '{}'", unknown.front())
                         : fmt::format("there is no command '{}'; did you mean '{}'?",
                                       unknown.front(), meant);
  }

  ExitCode run(Command& command, Context& context) {
    try {
      return command.run(context);
    } catch (const UsageError& error) {
      return wrong_usage(error.what());
    } catch (const api::ClientError& error) {
      print_error(error.what());
      return exit_code(error.code());
    } catch (const Error& error) {
      print_error(error.what());
      return exit_code(name(error.code()));
    } catch (const std::exception& error) {
      print_error(error.what());
      return ExitCode::kFailed;
    }
  }

  void print_error(std::string_view message) {
    streams_->err << "weightfs: " << printable(message) << '\n';
  }

  ExitCode wrong_usage(std::string_view message) {
    print_error(message);
    streams_->err << "Try '" << describe(asked_about()).name << " --help'.\n";
    return ExitCode::kUsage;
  }

  CLI::App app_;
  CommonOptions options_;
  std::map<std::string, CLI::App*> groups_;
  std::vector<std::pair<CLI::App*, std::unique_ptr<Command>>> commands_;
  Streams* streams_ = nullptr;
};

CommandLine::CommandLine(std::span<const CommandEntry> table)
    : parser_(std::make_unique<Parser>(table)) {
}

CommandLine::~CommandLine() = default;

ExitCode CommandLine::run(std::span<const std::string> arguments, Streams& streams,
                          const Environment& environment) {
  return parser_->run(arguments, streams, environment);
}

std::vector<CommandPage> CommandLine::pages() const {
  return parser_->pages();
}

}  // namespace weightfs::cli
