// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/event_text.hpp"
#include "running_daemon.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <sstream>
#include <string>
#include <vector>

using namespace weightfs;
using namespace weightfs::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

class Bench : public RunningDaemon {
 public:
  void pages(std::vector<api::EventPage> pages) {
    operations.state.with([&](auto& s) { s.pages = std::move(pages); });
  }
};

api::Event hit(std::uint64_t seq) {
  return {.seq = seq,
          .time = 1772366400.25,
          .event = "hit",
          .name = "org/m",
          .path = "w.bin",
          .bytes = 4'000'000,
          .reason = "r" + std::to_string(seq)};
}

/// Takes so many lines, and no more.
class FullAfter final : public std::stringbuf {
 public:
  explicit FullAfter(int lines) : lines_(lines) {}
  int sync() override { return full() ? -1 : 0; }

 private:
  [[nodiscard]] bool full() const {
    const std::string text = str();
    return std::count(text.begin(), text.end(), '\n') >= lines_;
  }
  int lines_;
};

}  // namespace

TEST_CASE("an event is one line for a person") {
  api::Event event = hit(1);
  event.snapshot = "0123456789ab";
  event.consumer = "/pod\n";
  CHECK(cli::event_text(event) ==
        "2026-03-01 12:00:00.250  hit                     org/m/w.bin  [0123456789ab]  4.00 MB  "
        "by /pod\\x0a  (r1)");
  CHECK(cli::event_text({.seq = 1, .time = 0, .event = "stop"}) == "1970-01-01 00:00:00.000  stop");
  CHECK_THAT(cli::event_text({.time = 1e300,
                              .event = "shadow",
                              .action = "would_evict",
                              .source = "https://h/m/",
                              .hit_rate = 0.875,
                              .saved_bytes = 2000}),
             ContainsSubstring("shadow would_evict") && ContainsSubstring("https://h/m/") &&
                 ContainsSubstring("hit rate 87.5%") && ContainsSubstring("saves 2.00 kB"));
}

TEST_CASE("events prints the last ones, as text or one JSON object on each line") {
  Bench bench;
  bench.pages({{.events = {hit(1), hit(2)}, .last = 2}});
  const Outcome text = bench.run({"events"});
  CHECK(text.status == 0);
  CHECK(std::count(text.out.begin(), text.out.end(), '\n') == 2);
  bench.pages({{.events = {hit(1), hit(2)}, .last = 2}});
  const Outcome json = bench.run({"events", "--json", "-n", "2"});
  std::istringstream lines(json.out);
  std::uint64_t count = 0;
  for (std::string line; std::getline(lines, line);) {
    CHECK(nlohmann::json::parse(line)["seq"] == ++count);
  }
  CHECK(count == 2);
  CHECK(bench.operations.calls() == std::vector<std::string>{"events since none limit 100 wait 0",
                                                             "events since none limit 2 wait 0"});
}

TEST_CASE("events of a time are asked for to their end, and what is not remembered is said") {
  Bench bench;
  std::vector<api::Event> page;
  for (std::uint64_t i = 1; i <= 1000; ++i) page.push_back(hit(i));
  bench.pages(
      {{.events = page, .last = 1000, .missed = true}, {.events = {hit(1001)}, .last = 1001}});
  const Outcome outcome = bench.run({"events", "--since", "1h", "-n", "3"});
  CHECK(std::count(outcome.out.begin(), outcome.out.end(), '\n') == 3);
  CHECK_THAT(outcome.out, ContainsSubstring("(r999)") && ContainsSubstring("(r1001)"));
  CHECK_THAT(outcome.err, ContainsSubstring("not remembered any more"));
  CHECK(bench.run({"events", "--since", "noon"}).status == 2);
  CHECK(bench.run({"events", "-n", "0"}).status == 2);
}

TEST_CASE("events --follow goes on from the last one, until nobody reads it") {
  Bench bench;
  bench.pages({{.events = {hit(1)}, .last = 1},
               {.last = 1},
               {.events = {hit(2)}, .last = 2},
               {.events = {hit(3)}, .last = 3}});
  FullAfter buffer(3);
  std::ostream out(&buffer);
  std::ostringstream err;
  cli::Streams streams{.out = out, .err = err};
  const std::vector<std::string> arguments{"--socket", bench.socket(), "events", "--follow"};
  CHECK(cli::weightfs_main(arguments, streams, {}) == 0);
  CHECK_THAT(buffer.str(), ContainsSubstring("(r3)"));
  CHECK(bench.operations.calls() == std::vector<std::string>{"events since none limit 100 wait 0",
                                                             "events since 1 limit 1000 wait 20",
                                                             "events since 1 limit 1000 wait 20",
                                                             "events since 2 limit 1000 wait 20"});
  CHECK(err.str().empty());
}

TEST_CASE("without a daemon there are no events to follow") {
  Bench bench;
  bench.stop();
  CHECK(bench.run({"events", "--follow"}).status == 4);
}
