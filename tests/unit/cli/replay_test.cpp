// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/file.hpp"
#include "cli/replay_plot.hpp"
#include "running_daemon.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

using namespace weightfs;
using namespace weightfs::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A trace in a file of its own, and the program told to replay it.
class TraceFile {
 public:
  explicit TraceFile(const std::string& content) { write_file_durably(path(), content); }

  [[nodiscard]] std::string path() const { return (directory_.path() / "trace").string(); }

  [[nodiscard]] Outcome replay(std::vector<std::string> options, Terminal terminal = {}) const {
    options.insert(options.begin(), {"replay", path()});
    return run_program(options, terminal);
  }
  [[nodiscard]] nlohmann::json json(std::vector<std::string> options) const {
    options.emplace_back("--json");
    return nlohmann::json::parse(replay(options).out);
  }

 private:
  TemporaryDirectory directory_;
};

const std::string kPlain =
    "time,user,model,bytes,host\n"
    "1,u,a,100,h1\n2,v,b,100,h2\n3,u,a,100,h1\n4,u,c,300,h2\n5,v,a,100,h1\n6,v,b,100,h2\n";

}  // namespace

TEST_CASE("replay gives a table on a terminal, and rows with tabs to another program") {
  const TraceFile trace(kPlain);
  const Outcome table =
      trace.replay({"--capacity", "2", "--policy", "lru", "--nodes", "1"}, {.out = true});
  CHECK(table.status == 0);
  CHECK_THAT(table.out, ContainsSubstring("CAPACITY  POLICY   HITS"));
  CHECK_THAT(table.err,
             ContainsSubstring("6 references to 3 artifacts by 2 consumers, on 1 node\n"));
  CHECK_THAT(table.err, ContainsSubstring("every artifact counts as one; for the sizes"));
  CHECK(trace.replay({"--capacity", "2", "--policy", "lru", "--nodes", "1"}).out ==
        "2\tlru\t33.3%\t33.3%\t50.0%\t4\t2\n2\tbelady\t50.0%\t50.0%\t100.0%\t3\t0\n");
}

TEST_CASE("replay --json gives one object, or a list for several capacities") {
  const TraceFile trace(kPlain);
  const auto one = trace.json({"--capacity", "200B", "--policy", "lru", "--nodes", "1"});
  CHECK(one.dump() ==
        R"({"capacity":200,"policies":[{"byte_hit_rate":0.375,"evictions":0,"object_hit_rate":0.5,)"
        R"("policy":"lru","pulled_bytes":500,"repeated_job_hit_rate":1.0},{"byte_hit_rate":0.375,)"
        R"("evictions":0,"object_hit_rate":0.5,"policy":"belady","pulled_bytes":500,)"
        R"("repeated_job_hit_rate":1.0}]})");
  const auto several = trace.json({"--capacity", "1,2", "--policy", "never"});
  REQUIRE(several.size() == 2);
  CHECK(several[1]["capacity"] == 2);
  const auto all = trace.json({"--capacity", "2"});
  std::vector<std::string> policies;
  for (const auto& row : all["policies"]) policies.push_back(row["policy"]);
  CHECK(policies ==
        std::vector<std::string>{"second-reference", "lru", "fifo", "lookahead", "belady"});
}

TEST_CASE("a fleet is what the trace says, or what the options say") {
  const TraceFile trace(kPlain);
  CHECK_THAT(trace.replay({"--capacity", "2"}).err, ContainsSubstring("on 2 nodes"));
  CHECK(trace.json({"--capacity", "1", "--policy", "lru"})["policies"][0]["evictions"] == 2);
  for (const std::string placement : {"random", "rendezvous", "holder"}) {
    CAPTURE(placement);
    const Outcome outcome =
        trace.replay({"--capacity", "1", "--nodes", "3", "--placement", placement});
    CHECK(outcome.status == 0);
    CHECK_THAT(outcome.err, ContainsSubstring("on 3 nodes"));
  }
}

TEST_CASE("rows that do not parse are counted and named on standard error, and harmless there") {
  const TraceFile trace("time,artifact\n1,a\n\x1b[31m,b\n2,\n3,a\n");
  const Outcome outcome = trace.replay({"--capacity", "1"});
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.err,
             ContainsSubstring("2 rows do not parse and are left out: line 3 '\\x1b[31m' is not a "
                               "time; line 4 has no artifact\n"));
  CHECK_THAT(outcome.err, ContainsSubstring("each by another consumer"));
}

TEST_CASE("wrong options of replay are status 2, and nothing is printed") {
  const TraceFile trace(kPlain);
  const std::vector<std::vector<std::string>> rows{
      {},
      {"--capacity", ""},
      {"--capacity", "0"},
      {"--capacity", "x"},
      {"--capacity", "1,2GB"},
      {"--capacity", "1,,2"},
      {"--capacity", "1", "--policy", "best"},
      {"--capacity", "1", "--policy", ""},
      {"--capacity", "1", "--placement", "best"},
      {"--capacity", "1", "--placement", "recorded", "--nodes", "2"},
      {"--capacity", "1", "--nodes", "0"},
      {"--capacity", "1", "--lookahead", "soon"},
  };
  for (const auto& options : rows) {
    CAPTURE(options);
    const Outcome outcome = trace.replay(options);
    CHECK(outcome.status == 2);
    CHECK(outcome.out.empty());
    CHECK_FALSE(outcome.err.empty());
  }
}

TEST_CASE("what a trace lacks is said with the way out") {
  const TraceFile bare("artifact,x\na,1\nb,1\n");
  CHECK_THAT(bare.replay({"--capacity", "1GB"}).err, ContainsSubstring("--size"));
  CHECK_THAT(bare.replay({"--capacity", "1", "--lookahead", "1h"}).err,
             ContainsSubstring("--time"));
  CHECK_THAT(bare.replay({"--capacity", "1", "--placement", "recorded"}).err,
             ContainsSubstring("--node"));
  CHECK_THAT(bare.replay({"--capacity", "1", "--size", "weight"}).err,
             ContainsSubstring("--size: there is no column 'weight'; there are: artifact, x"));
  const Outcome none = run_program({"replay", "/nonexistent/trace", "--capacity", "1"});
  CHECK(none.status == 3);
  CHECK_THAT(none.err, ContainsSubstring("/nonexistent/trace"));
}

TEST_CASE("a plot shows every series at every capacity, and fits the terminal") {
  const std::vector<std::string> capacities{"4", "8", "12"};
  const std::vector<cli::PlotSeries> series{{"lru", 'L', {0.66, 0.85, 0.92}},
                                            {"fifo", 'F', {0.66, 0.81, 0.92}},
                                            {"belady", 'B', {0.80, 0.92, 0.96}}};
  const std::string plot = cli::replay_plot(capacities, series, 60);
  CHECK_THAT(plot, ContainsSubstring("100.0% |"));
  CHECK_THAT(plot, ContainsSubstring(" 65.0% |     LF\n"));
  CHECK_THAT(plot, ContainsSubstring("+------------------------------\n"));
  CHECK_THAT(plot, ContainsSubstring("  L lru  F fifo  B belady\n"));
  for (const char mark : {'L', 'F', 'B'}) CHECK(std::ranges::count(plot, mark) == 4);

  const std::vector<std::string> many(200, "1.00 TB");
  const std::vector<cli::PlotSeries> flat{{"lru", 'L', std::vector<double>(200, 0)}};
  std::istringstream lines(cli::replay_plot(many, flat, 60));
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 60);
}

TEST_CASE("several capacities are plotted, and with --plot the steps up to one") {
  const TraceFile trace(kPlain);
  CHECK_THAT(trace.replay({"--capacity", "1,2"}).out, ContainsSubstring("Hits over capacity:\n"));
  CHECK_THAT(trace.replay({"--capacity", "3", "--plot"}).out,
             ContainsSubstring("1         2         3"));
  CHECK_THAT(trace.replay({"--capacity", "3"}).out, !ContainsSubstring("Hits over"));
}
