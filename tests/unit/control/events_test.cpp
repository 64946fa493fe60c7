// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/json_codec.hpp"
#include "control/router.hpp"
#include "control/server.hpp"
#include "fake_operations.hpp"
#include "running_service.hpp"
#include "telemetry/event_line.hpp"
#include "weightfs/client.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <fcntl.h>
#include <future>
#include <string>
#include <vector>

using namespace weightfs;
using namespace weightfs::tests;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Bench {
  FakeOperations operations;
  control::Router router{operations, Log::silent()};
  control::Response get(std::string target) {
    return router.handle({control::Method::kGet, std::move(target), ""});
  }
};

/// "event action name" of each.
std::vector<std::string> told(control::Service& service) {
  std::vector<std::string> all;
  for (const api::Event& event : service.events({}).events) {
    all.push_back(event.event + (event.action.empty() ? "" : " " + event.action) + " " +
                  event.name);
  }
  return all;
}

}  // namespace

TEST_CASE("what is asked of the events reaches them, within bounds") {
  Bench bench;
  CHECK(bench.get("/v1/events").body == R"({"events":[],"last":0,"missed":false})");
  (void)bench.get("/v1/events?since=17&limit=5&wait=3");
  (void)bench.get("/v1/events?wait=4000000000");
  CHECK(bench.operations.calls() ==
        std::vector<std::string>{"events since none limit 1000 wait 0",
                                 "events since 17 limit 5 wait 3",
                                 "events since none limit 1000 wait 30"});
  for (const char* query : {"limit=0", "since=-1", "since=x", "wait=1s", "from=1"}) {
    CAPTURE(query);
    CHECK(bench.get("/v1/events?" + std::string(query)).status == 400);
  }
}

TEST_CASE("a server that ends lets go who waits for events") {
  Bench bench;
  bench.router.close();
  CHECK(bench.operations.state.with([](auto& s) { return s.waiting_ended; }));
}

TEST_CASE("the client brings a page of events back") {
  const TemporaryDirectory directory;
  const std::string socket = (directory.path() / "s").string();
  Bench bench;
  const control::Server server(control::ListenSocket(socket, 0600), bench.router, {},
                               Log::silent());
  const api::EventPage page{.events = {{.seq = 5,
                                        .time = 1772366400.25,
                                        .event = "shadow",
                                        .path = "a\xff",
                                        .bytes = 7,
                                        .hit_rate = 0.5,
                                        .saved_bytes = 3},
                                       {.seq = 6, .time = 1, .event = "hit"}},
                            .last = 6,
                            .missed = true};
  bench.operations.state.with([&](auto& s) { s.pages = {page}; });
  api::Client client({.socket = socket});
  CHECK(client.events({.since = 4, .limit = 2}) == page);
  CHECK(client.events({.since = 6}).last == 6);
}

TEST_CASE("an event is the same JSON in an answer and in the log") {
  const telemetry::Event event{.kind = telemetry::EventKind::kShadow,
                               .action = "would_evict",
                               .name = "n",
                               .snapshot = "s",
                               .path = "p\xff",
                               .source = "file:///x",
                               .consumer = "c",
                               .bytes = 1,
                               .reason = "r",
                               .hit_rate = 0.25,
                               .saved_bytes = 2};
  RunningService bench;
  bench.events.put(event);
  const telemetry::EventLog::Page recorded = bench.events.read({.limit = 1});
  const api::EventPage page = bench.service.events({.limit = 1});
  REQUIRE(page.events.size() == 1);
  CHECK(control::decode<api::Event>(telemetry::line_of(*recorded.events.front())) ==
        page.events.front());
}

TEST_CASE("what is done to names is told, with the bytes and the reason") {
  RunningService bench;
  const std::string source = bench.source("m", "w.bin", std::string(1000, 'a'));
  (void)bench.service.add({.name = "org/m", .source = source}, {});
  (void)bench.service.pin("org/m", {.reason = "prod"});
  (void)bench.service.unpin("org/m");
  CHECK(bench.fetch("org/m").complete);
  (void)bench.source("m", "w.bin", std::string(3000, 'b'));
  const api::UpdateResult updated = bench.service.update("org/m", {}, {});
  (void)bench.service.verify("org/m", {});
  (void)bench.service.evict("org/m", control::Shared::kKeep, control::DryRun::kYes);
  (void)bench.service.evict("org/m", control::Shared::kKeep, control::DryRun::kNo);
  (void)bench.service.remove("org/m", control::DryRun::kYes);
  (void)bench.service.remove("org/m", control::DryRun::kNo);
  CHECK(told(bench.service) == std::vector<std::string>{"add org/m", "pin org/m", "unpin org/m",
                                                        "update org/m", "flip org/m",
                                                        "verification intact org/m",
                                                        "eviction org/m", "remove org/m"});
  const auto events = bench.service.events({}).events;
  CHECK(events[0].source == source);
  CHECK(events[0].bytes == 1000);
  CHECK(events[0].snapshot.size() == 12);
  CHECK(events[1].reason == "prod");
  CHECK(events[4].reason == "from " + updated.from + " to " + updated.to);
  CHECK(events[4].bytes == 3000);
  CHECK(events[5].bytes == 3000);
  CHECK(events[6].bytes == 3000);
  CHECK(events[7].bytes == 1000);
  CHECK(bench.service.status().events.recorded == 8);
}

TEST_CASE("a blob that verify finds damaged is told by its file") {
  RunningService bench;
  const std::string content(5000, 'a');
  (void)bench.service.add({.name = "org/m", .source = bench.source("m", "w.bin", content)}, {});
  CHECK(bench.fetch("org/m").complete);
  const auto blob = bench.blob(content);
  std::filesystem::permissions(blob, std::filesystem::perms::owner_all);
  write_at(open_file(blob, O_WRONLY), 7, std::as_bytes(std::span("x", 1)));
  (void)bench.service.verify({}, {});
  const auto events = bench.service.events({.limit = 2}).events;
  REQUIRE(events.size() == 2);
  CHECK(events[0].event == "verification");
  CHECK(events[0].action == "mismatch");
  CHECK(events[0].name == "org/m");
  CHECK(events[0].path == "w.bin");  // within the snapshot, as of every event
  CHECK(events[0].snapshot.size() == 12);
  CHECK_THAT(events[0].reason, ContainsSubstring(Digest::of(content).short_hex()));
  CHECK(events[1].action == "intact");
}

TEST_CASE("a service that is told to end answers who waits for events") {
  RunningService bench;
  bench.events.put({.kind = telemetry::EventKind::kStart});
  const std::uint64_t last = bench.service.events({}).last;
  auto waiting = std::async(std::launch::async, [&] {
    return bench.service.events({.since = last, .wait_seconds = 30});
  });
  bench.service.end_waiting();
  CHECK(waiting.wait_for(10s) == std::future_status::ready);
}
