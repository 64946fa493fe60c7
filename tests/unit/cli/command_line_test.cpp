// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/command_line.hpp"
#include "base/file.hpp"
#include "base/version.hpp"
#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/man_page.hpp"
#include "cli/source_root.hpp"
#include "running_daemon.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

using namespace weightfs;
using namespace weightfs::tests;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("help goes to standard output and names every command") {
  const Outcome help = run_program({"--help"});
  CHECK(help.status == 0);
  CHECK(help.err.empty());
  for (const auto& entry : cli::command_table()) {
    CAPTURE(entry.name);
    std::vector<std::string> words{std::string(entry.name)};
    if (const auto space = words[0].find(' '); space != std::string::npos) {
      words = {words[0].substr(0, space), words[0].substr(space + 1)};
    }
    const bool shown = entry.visibility == cli::Visibility::kShown;
    CHECK((help.out.find("\n  " + words.front() + " ") != std::string::npos) == shown);
    words.emplace_back("--help");
    const Outcome own = run_program(words);
    CHECK(own.status == 0);
    CHECK_THAT(own.out, ContainsSubstring("Usage: weightfs " + std::string(entry.name)));
    CHECK_THAT(own.out, ContainsSubstring("--socket PATH"));
  }
  CHECK(run_program({"--version"}).out == "weightfs " + std::string(kVersion) + "\n");
}

TEST_CASE("help fits the terminal") {
  for (const auto& page : cli::CommandLine(cli::command_table()).pages()) {
    std::istringstream lines(cli::help_text(page, 80));
    for (std::string line; std::getline(lines, line);) {
      CAPTURE(page.name, line);
      CHECK((line.size() <= 80 || line.starts_with("Usage:")));
    }
  }
}

TEST_CASE("wrong usage is status 2, on standard error, with the way to help") {
  const std::vector<std::vector<std::string>> rows{{},
                                                   {"nonsense"},
                                                   {"add"},
                                                   {"add", "name"},
                                                   {"status", "--nonsense"},
                                                   {"wait"},
                                                   {"ls", "a", "b"},
                                                   {"config"},
                                                   {"config", "x"},
                                                   {"--socket"},
                                                   {"wait", "x", "--timeout", "soon"},
                                                   {"add", "../x", "file:///x"},
                                                   {"add", "x", "ftp://y"},
                                                   {"add", "", "file:///x"},
                                                   {"manifest", ".", "--threads", "0"}};
  for (const auto& arguments : rows) {
    CAPTURE(arguments);
    const Outcome outcome = run_program(arguments);
    CHECK(outcome.status == 2);
    CHECK(outcome.out.empty());
    CHECK_FALSE(outcome.err.empty());
  }
  CHECK_THAT(run_program({"statsu"}).err,
             ContainsSubstring("there is no command 'statsu'; did you mean 'status'?"));
  CHECK_THAT(run_program({"config", "chekc"}).err, ContainsSubstring("did you mean 'check'?"));
  CHECK_THAT(run_program({"add"}).err, ContainsSubstring("Try 'weightfs add --help'"));
}

TEST_CASE("without a daemon every command that needs one is status 4 and one line") {
  const TemporaryDirectory directory;
  const std::string socket = (directory.path() / "none.sock").string();
  const std::vector<std::vector<std::string>> rows{
      {"status"},    {"ls"},           {"ls", "a"},       {"add", "a/b", "file:///tmp"},
      {"rm", "a"},   {"update", "a"},  {"warm", "a"},     {"warm", "a", "--wait"},
      {"wait", "a"}, {"pin", "a"},     {"unpin", "a"},    {"evict", "a"},
      {"prune"},     {"confirm", "a"}, {"rollback", "a"}, {"verify"},
      {"why", "/x"}, {"mode"},         {"unmount"}};
  for (std::vector<std::string> arguments : rows) {
    CAPTURE(arguments);
    arguments.insert(arguments.begin(), {"--socket", socket});
    const Outcome outcome = run_program(arguments);
    CHECK(outcome.status == 4);
    CHECK(outcome.out.empty());
    CHECK(std::ranges::count(outcome.err, '\n') == 1);
    CHECK_THAT(outcome.err, ContainsSubstring(socket));
  }
}

TEST_CASE("the socket may stand before or after the command, or in the environment") {
  const RunningDaemon daemon;
  CHECK(run_program({"--socket", daemon.socket(), "status"}).status == 0);
  CHECK(run_program({"status", "--socket", daemon.socket()}).status == 0);
  CHECK(run_program({"status"}, {}, {{"WEIGHTFS_SOCKET", daemon.socket()}}).status == 0);
  const auto config = daemon.directory() / "config.json";
  write_file_durably(config, R"({"socket": ")" + daemon.socket() + R"("})");
  CHECK(run_program({"status", "--config", config.string()}).status == 0);
  CHECK(run_program({"status"}, {}, {{"WEIGHTFS_CONFIG", config.string()}}).status == 0);
  write_file_durably(config, "{");
  CHECK(run_program({"status", "--config", config.string()}).status == 2);
}

TEST_CASE("each error has its exit status") {
  CHECK(cli::exit_code("unreachable") == cli::ExitCode::kUnreachable);
  CHECK(cli::exit_code("not_found") == cli::ExitCode::kNotReady);
  CHECK(cli::exit_code("not_ready") == cli::ExitCode::kNotReady);
  CHECK(cli::exit_code("busy") == cli::ExitCode::kFailed);
  CHECK(cli::exit_code("a code of a newer daemon") == cli::ExitCode::kFailed);
}

TEST_CASE("config check prints each setting with its origin, or what is wrong and status 2") {
  const TemporaryDirectory directory;
  const std::string path = (directory.path() / "c.json").string();
  write_file_durably(path,
                     R"({"deadline": "30s", "models": [{"name": "a/b", "source": "file:///x"}]})");
  const Outcome good = run_program({"config", "check", "--config", path, "--connections", "5"});
  CHECK(good.status == 0);
  CHECK_THAT(good.out, ContainsSubstring("deadline\t30s\tfile " + path + "\n"));
  CHECK_THAT(good.out, ContainsSubstring("connections\t5\tflag --connections\n"));
  CHECK_THAT(good.out, ContainsSubstring("model a/b\tfile:///x\tfile " + path));
  CHECK_THAT(run_program({"config", "check", "--config", path, "--json"}).out,
             ContainsSubstring(R"("name": "deadline")"));

  write_file_durably(path, R"({"deadlin": "30s"})");
  const Outcome bad = run_program({"config", "check", "--config", path});
  CHECK(bad.status == 2);
  CHECK_THAT(bad.err, ContainsSubstring(R"(unknown key "deadlin"; did you mean "deadline"?)"));

  write_file_durably(path, R"({"models": [{"name": "a@b", "source": "file:///x"}]})");
  CHECK(run_program({"config", "check", "--config", path}).status == 2);
  write_file_durably(path, R"({"models": [{"name": "a", "source": "x"}]})");
  CHECK(run_program({"config", "check", "--config", path}).status == 2);
}

TEST_CASE("the manual page is the one that the texts of the help give") {
  // To renew it: build/weightfs man > man/weightfs.1
  const std::filesystem::path path = std::filesystem::path(kSourceRoot) / "man" / "weightfs.1";
  CHECK(read_file(path, 1 << 20) == cli::man_page(cli::CommandLine(cli::command_table()).pages()));
}
