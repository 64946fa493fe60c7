// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "telemetry/event_line.hpp"

#include <catch2/catch_test_macros.hpp>

namespace weightfs::telemetry {
namespace {

using namespace std::chrono_literals;

Event full() {
  return {.kind = EventKind::kShadow,
          .action = "would_evict",
          .name = "org/name",
          .snapshot = "0123456789ab",
          .path = "model.safetensors",
          .source = "https://host/m/?...",
          .consumer = "/kubepods/pod-1",
          .bytes = 7'000'000'000'000,
          .reason = "room for \"it\"\n",
          .hit_rate = 0.8125,
          .saved_bytes = 12,
          .sequence = 1'772'366'400'250'123,
          .time = std::chrono::system_clock::time_point(1'772'366'400'250ms)};
}

TEST_CASE("an event comes back from its line as it was") {
  CHECK(event_of(line_of(full())) == full());
  for (int kind = 0; kind <= static_cast<int>(EventKind::kDropped); ++kind) {
    const Event event{.kind = static_cast<EventKind>(kind), .sequence = 1};
    CHECK(event_of(line_of(event)) == event);
  }
}

TEST_CASE("the line has what a replay reads, and leaves out what does not apply") {
  const Event event{.kind = EventKind::kReference,
                    .snapshot = "0123456789ab",
                    .consumer = "pod",
                    .bytes = 40,
                    .sequence = 9,
                    .time = std::chrono::system_clock::time_point(1'772'366'400'250ms)};
  CHECK(line_of(event) ==
        R"({"seq":9,"time":1772366400.25,"event":"reference","snapshot":"0123456789ab",)"
        R"("consumer":"pod","bytes":40})");
}

TEST_CASE("a line is one line, and text that is not UTF-8 survives") {
  Event event = full();
  event.path = "a\xff\n";
  event.consumer = "/a\nb";
  CHECK(line_of(event).find('\n') == std::string::npos);
  CHECK(event_of(line_of(event)) == event);
}

TEST_CASE("what is no event's line is none, and what another version adds is passed over") {
  for (const char* line :
       {"", "{", "null", "[]", "{}", R"({"seq":1,"time":1})",
        R"({"seq":1,"time":1,"event":"more"})", R"({"seq":-1,"time":1,"event":"hit"})",
        R"({"seq":1,"time":"now","event":"hit"})", R"({"seq":1,"time":1e300,"event":"hit"})",
        R"({"seq":1,"time":1,"event":7})"}) {
    CAPTURE(line);
    CHECK_FALSE(event_of(line));
  }
  const auto event =
      event_of(R"({"seq":1,"time":2,"event":"hit","more":[1],"bytes":"3","path":4})");
  REQUIRE(event);
  CHECK(event->bytes == 0);
  CHECK(event->path.empty());
}

}  // namespace
}  // namespace weightfs::telemetry
