// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/end_argument.hpp"
#include "running_daemon.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

using namespace weightfs;
using cli::end_argument;
using namespace weightfs::tests;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

namespace {

class Bench : public RunningDaemon {
 public:
  Bench() {
    operations.state.with([](auto& s) {
      s.models = {{.name = "org/m",
                   .source = "https://host/m/",
                   .revision = "0123456789abcdef",
                   .key = "0123456789abcdef",
                   .bytes = 4'000'000'000,
                   .resident_bytes = 1'000'000'000,
                   .file_count = 4},
                  {.name = "pinned", .complete = true, .rollback = "cold", .pinned = true}};
      s.files = {{.path = "weights-\x1b[31m\xff.bin", .size = 10, .complete = true}};
    });
  }
  void progress(std::vector<api::Progress> steps) {
    operations.state.with([&](auto& s) { s.progress = std::move(steps); });
  }
};

}  // namespace

TEST_CASE("ls shows models as a table on a terminal and as lines elsewhere") {
  const Bench bench;
  CHECK(bench.run({"ls"}).out ==
        "org/m\t4.00 GB\t25%\t4\t\t0123456789ab\thttps://host/m/\t\n"
        "pinned\t0 B\tcomplete\t0\tpinned\t\t\tcold\n");
  const Outcome table = bench.run({"ls"}, {.out = true});
  CHECK_THAT(table.out, ContainsSubstring("NAME       SIZE     LOCAL  FILES  PIN"));
  CHECK_THAT(table.out, ContainsSubstring("org/m   4.00 GB       25%      4"));
}

TEST_CASE("names from afar cannot speak to the terminal") {
  const Bench bench;
  const Outcome listed = bench.run({"ls", "org/m"}, {.out = true});
  CHECK_THAT(listed.out, ContainsSubstring(R"(weights-\x1b[31m\xff.bin)"));
  CHECK(listed.out.find('\x1b') == std::string::npos);
  CHECK_THAT(listed.out, ContainsSubstring("https://host/m/"));
}

TEST_CASE("every command that prints speaks JSON") {
  Bench bench;
  bench.progress({{.name = "org/m", .complete = true}});
  const std::vector<std::vector<std::string>> rows{{"status"},
                                                   {"ls"},
                                                   {"ls", "org/m"},
                                                   {"add", "new", "file:///x"},
                                                   {"update", "org/m"},
                                                   {"warm", "org/m"},
                                                   {"warm", "org/m", "--wait"},
                                                   {"wait", "org/m"},
                                                   {"pin", "org/m"},
                                                   {"unpin", "org/m"},
                                                   {"lease", "put", "job", "org/m", "--for", "1h"},
                                                   {"lease", "ls"},
                                                   {"lease", "ls", "job"},
                                                   {"lease", "rm", "job"},
                                                   {"confirm", "org/m"},
                                                   {"rollback", "org/m"},
                                                   {"evict", "org/m"},
                                                   {"prune"},
                                                   {"rm", "org/m"},
                                                   {"verify"},
                                                   {"verify", "org/m"},
                                                   {"why", "/x"},
                                                   {"mode"},
                                                   {"unmount"}};
  for (std::vector<std::string> arguments : rows) {
    CAPTURE(arguments);
    arguments.emplace_back("--json");
    const Outcome outcome = bench.run(arguments);
    CHECK(outcome.status == 0);
    CHECK(json::parse(outcome.out).is_object());
    CHECK(outcome.err.empty());
  }
}

TEST_CASE("commands say what they did in a line") {
  Bench bench;
  bench.progress({{.name = "org/m", .bytes = 10, .verified = 5, .running = true}});
  const std::vector<std::pair<std::vector<std::string>, std::string>> rows{
      {{"add", "new", "file:///x"}, "new: 4 files, 0 B, revision \n"},
      {{"update", "org/m"}, "org/m: old -> new\n"},
      {{"warm", "org/m"}, "org/m: fetching, 5 B of 10 B verified\n"},
      {{"pin", "org/m", "--reason", "prod"}, "org/m: pinned, fetching what is missing\n"},
      {{"pin", "org/m", "--until", "2100-01-01", "--owner", "ada"},
       "org/m: pinned until 2100-01-01T00:00:00Z, fetching what is missing\n"},
      {{"unpin", "org/m"}, "org/m: not pinned\n"},
      {{"lease", "put", "job", "org/m", "a@b", "--not-before", "2100-01-01", "--until",
        "2100-01-02", "--bandwidth", "5MB", "--priority", "3"},
       "job: org/m a@b, from 2100-01-01T00:00:00Z until 2100-01-02T00:00:00Z: 5 B missing, at "
       "risk\n"},
      {{"lease", "ls"},
       "job\t2100-01-01T00:00:00Z\t2100-01-02T00:00:00Z\t5 B missing, at risk\torg/m a@b\t\n"},
      {{"lease", "rm", "job"}, "job: not leased any more\n"},
      {{"confirm", "org/m"}, "org/m: rolls back to 0123456789abcdef from now on\n"},
      {{"rollback", "org/m"}, "org/m: b -> a\n"},
      {{"evict", "org/m", "--dry-run"}, "org/m: would evict, and free 3 files and 3.00 GB\n"},
      {{"prune", "org/m", "--keep", "2", "--dry-run"},
       "org/m@r1: would be removed\norg/m@r2: stays, confirmed\n3 files, 3.00 GB would be freed\n"},
      {{"rm", "org/m"}, "org/m: removed, 3 files and 3.00 GB freed\n"},
      {{"unmount"}, ""},
  };
  for (const auto& [arguments, text] : rows) {
    CAPTURE(arguments);
    const Outcome outcome = bench.run(arguments);
    CHECK(outcome.status == 0);
    CHECK(outcome.out == text);
  }
  const auto calls = bench.operations.calls();
  CHECK(std::ranges::find(calls, "pin org/m prod") != calls.end());
  CHECK(std::ranges::find(calls, "evict org/m dry") != calls.end());
  CHECK(std::ranges::find(calls, "prune org/m 2 dry") != calls.end());
}

TEST_CASE("a pin ends when it is told to, in so many words or in hours from now") {
  using std::chrono::seconds;
  const std::chrono::system_clock::time_point now{seconds(1'772'366'400)};
  CHECK(end_argument({.until = "2026-03-02T00:00:00+01:00", .duration = ""}, now) ==
        "2026-03-01T23:00:00Z");
  CHECK(end_argument({.until = "", .duration = "12h"}, now) == "2026-03-02T00:00:00Z");
  CHECK(end_argument({}, now).empty());
  Bench bench;
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"--until", "2100-01-01", "--for", "12h"},
                                             {"--until", "soon"},
                                             {"--for", "12"},
                                             {"--for", "0s"},
                                             {"--for", "0"},
                                             {"--for", "-1h"},
                                             {"--for", "99999999d"}}) {
    std::vector<std::string> arguments{"pin", "org/m"};
    arguments.insert(arguments.end(), wrong.begin(), wrong.end());
    CAPTURE(wrong);
    CHECK(bench.run(arguments).status == 2);
  }
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"lease", "put", "", "org/m", "--for", "1h"},
                                             {"lease", "put", "a/b", "org/m", "--for", "1h"},
                                             {"lease", "put", "job", "org/m", "--for", "0s"},
                                             {"lease", "put", "job", "org/m"},
                                             {"lease", "rm", ""}}) {
    CAPTURE(wrong);
    CHECK(bench.run(wrong).status == 2);
  }
  CHECK(bench.operations.calls().empty());
}

TEST_CASE("reload says what became of each model, and ends with what that means") {
  Bench bench;
  const auto model = [](const char* name, const char* outcome) {
    api::ModelDiff diff{.name = name, .change = "add", .source = "file:///x", .outcome = outcome};
    if (diff.outcome != "applied") diff.reason = "because";
    return diff;
  };
  bench.operations.diff = {
      .models = {model("a", "applied")},
      .settings = {{"fill_bandwidth", "unlimited", "1MB/s", "the file", "reload"},
                   {"connections", "8", "9", "the file", "restart"}}};
  Outcome outcome = bench.run({"reload"});
  CHECK(outcome.status == 0);
  CHECK(outcome.out ==
        "model a: add from file:///x: applied\n"
        "fill_bandwidth: unlimited -> 1MB/s (the file), upon reload\n"
        "connections: 8 -> 9 (the file), after a restart of the daemon\n");
  bench.operations.diff = {.models = {model("a", "applied"), model("b", "deferred")}};
  outcome = bench.run({"reload"});
  CHECK(outcome.status == 3);
  CHECK_THAT(outcome.out, ContainsSubstring("model b: add from file:///x: deferred, because\n"));
  bench.operations.diff.models.push_back(model("c", "refused"));
  CHECK(bench.run({"reload", "--json"}).status == 1);
}

TEST_CASE("ls says until when something is pinned, by whom and why") {
  Bench bench;
  bench.operations.state.with([](auto& s) {
    s.models[0].pinned = true;
    s.models[0].pin_reason = "launch";
    s.models[0].pin_owner = "ada";
    s.models[0].pin_until = 1'772'366'400;
  });
  CHECK_THAT(bench.run({"ls"}).out, ContainsSubstring("\tuntil 2026-03-01T12:00:00Z\t"));
  CHECK_THAT(bench.run({"ls", "org/m"}).out,
             ContainsSubstring(", pinned until 2026-03-01T12:00:00Z by ada (launch)"));
}

TEST_CASE("pin does not promise what is not being done") {
  Bench bench;
  bench.progress({{.name = "org/m", .bytes = 10}});
  CHECK(
      bench.run({"pin", "org/m"}).out ==
      "org/m: pinned, but what is missing is not being fetched: 'weightfs warm org/m' says why\n");
  CHECK(bench.run({"pin", "pinned"}).out == "pinned: pinned\n");
}

TEST_CASE("a name that is not there is status 3, a refusal is status 1, with the sentence") {
  Bench bench;
  for (const char* command :
       {"rm", "update", "warm", "wait", "pin", "unpin", "confirm", "rollback", "evict", "ls"}) {
    CAPTURE(command);
    const Outcome outcome = bench.run({command, "no/such"});
    CHECK(outcome.status == 3);
    CHECK(outcome.err == "weightfs: there is no model no/such\n");
  }
  CHECK(bench.run({"evict", "pinned"}).status == 1);
  bench.operations.state.with([](auto& s) { s.mount_busy = true; });
  CHECK(bench.run({"unmount"}).status == 1);
  CHECK(bench.run({"unmount", "--lazy"}).status == 0);
}

TEST_CASE("verify fails when something is corrupt, and names it") {
  Bench bench;
  bench.operations.state.with([](auto& s) {
    s.verified = {.blobs = 2, .bytes = 20, .corrupt = {{.sha256 = "abcd", .files = {"org/m/x"}}}};
  });
  const Outcome outcome = bench.run({"verify", "org/m"});
  CHECK(outcome.status == 1);
  CHECK_THAT(outcome.err, ContainsSubstring("abcd\n  org/m/x\n"));
  CHECK(outcome.out == "2 files, 20 B verified; 1 corrupt\n");
}

TEST_CASE("wait returns when everything is verified") {
  Bench bench;
  const api::Progress half{
      .name = "org/m", .bytes = 100, .written = 60, .verified = 50, .running = true};
  api::Progress whole = half;
  whole.verified = whole.written = 100;
  whole.complete = true;
  whole.running = false;
  bench.progress({half, half, whole});
  const Outcome outcome = bench.run({"wait", "org/m"});
  CHECK(outcome.status == 0);
  CHECK(outcome.out == "org/m: complete, 100 B in 0 files\n");
  CHECK(outcome.err.empty());
  CHECK(bench.operations.calls() ==
        std::vector<std::string>{"warm org/m", "progress org/m", "progress org/m"});
}

TEST_CASE("a progress line is drawn on a terminal and cleared at the end") {
  Bench bench;
  bench.progress({{.name = "org/m", .bytes = 100, .written = 60, .running = true},
                  {.name = "org/m", .bytes = 100, .written = 100, .complete = true}});
  const Outcome outcome = bench.run({"warm", "org/m", "--wait"}, {.err = true});
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.err, ContainsSubstring("60 B of 100 B   60%"));
  CHECK(outcome.err.ends_with("\r\033[K"));
}

TEST_CASE("wait is status 3 when its time is over, and 1 when a file failed") {
  Bench bench;
  bench.progress({{.name = "org/m", .bytes = 100, .verified = 50, .running = true}});
  const Outcome late = bench.run({"wait", "org/m", "--timeout", "30ms"});
  CHECK(late.status == 3);
  CHECK(late.err == "weightfs: org/m: not ready, 50 B of 100 B verified\n");
  CHECK(bench.run({"wait", "org/m", "--timeout", "0"}).status == 3);

  bench.progress({{.name = "org/m", .bytes = 100, .running = true},
                  {.name = "org/m", .bytes = 100, .error = api::Fault{"corrupt", "x is corrupt"}}});
  const Outcome failed = bench.run({"wait", "org/m"});
  CHECK(failed.status == 1);
  CHECK(failed.err == "weightfs: org/m: x is corrupt\n");
}

TEST_CASE("wait keeps to its time with a daemon that does not answer") {
  const TemporaryDirectory directory;
  const std::string socket = (directory.path() / "s").string();
  const control::ListenSocket listening(socket, 0600);
  const auto began = std::chrono::steady_clock::now();
  const Outcome outcome = run_program({"--socket", socket, "wait", "org/m", "--timeout", "1s"});
  CHECK(outcome.status == 4);
  CHECK_THAT(outcome.err, ContainsSubstring("has not answered"));
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(10));  // not 20
}

TEST_CASE("wait asks for the warm again when a new daemon knows nothing of it") {
  Bench bench;
  const api::Progress idle{.name = "org/m", .bytes = 100};
  bench.progress({{.name = "org/m", .bytes = 100, .running = true},
                  idle,
                  {.name = "org/m", .bytes = 100, .complete = true}});
  CHECK(bench.run({"wait", "org/m"}).status == 0);
  CHECK(bench.operations.calls() ==
        std::vector<std::string>{"warm org/m", "progress org/m", "warm org/m"});
}

TEST_CASE("why of what is not there is status 3") {
  Bench bench;
  bench.operations.state.with(
      [](auto& s) { s.why = {.state = "absent", .sentence = "No model has such a name."}; });
  const Outcome absent = bench.run({"why", "/models/x/../y"});
  CHECK(absent.status == 3);
  CHECK(absent.out == "No model has such a name.\n");
  CHECK(bench.operations.calls() == std::vector<std::string>{"why /models/y"});
}

TEST_CASE("status for a person says what matters") {
  Bench bench;
  bench.operations.state.with([](auto& s) {
    s.status = {
        .version = "0.1.0",
        .pid = 7,
        .keeper_pid = 6,
        .uptime_seconds = 65,
        .mode = "prod",
        .mount = "/models",
        .passthrough = {false, "the kernel is older than 6.9"},
        .bandwidth = {.fill = {.bytes_per_second = 500'000'000, .waited_ms = 65'000}, .write = {}},
        .missing_models = {{"org/typo", {"not_found", "no such source"}, false},
                           {"org/away", {"unavailable", "no answer"}, true}},
        .fills = {{.name = "org/m",
                   .path = "x",
                   .also = {"org/n/x", "org/n/y"},
                   .size = 100,
                   .written = 50,
                   .parked = 2,
                   .connections = 16}}};
  });
  const std::string text = bench.run({"status"}).out;
  CHECK_THAT(text, ContainsSubstring("pid 7, keeper 6, up 1m 05s, mode prod"));
  CHECK_THAT(text, ContainsSubstring("/models, no passthrough: the kernel is older than 6.9"));
  CHECK_THAT(text, ContainsSubstring("missing   org/typo: no such source\n"
                                     "missing   org/away: no answer; trying again\n"));
  CHECK_THAT(text, ContainsSubstring("org/m/x (also org/n/x and 1 more)  50%  50 B of 100 B  0 B/s "
                                     " 16 connections, 2 reads wait"));
  CHECK_THAT(text, ContainsSubstring("fetched   at most 500MB/s, for which fills waited 1m 05s\n"));
  CHECK_THAT(text, !ContainsSubstring("written"));
  CHECK(bench.run({"mode"}).out == "prod\n");
}
