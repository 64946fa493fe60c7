// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "telemetry/event_log.hpp"

#include "../control/temporary_directory.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "policy/trace_parser.hpp"
#include "telemetry/event_line.hpp"

#include <catch2/catch_test_macros.hpp>

#include <future>
#include <sstream>
#include <thread>

namespace weightfs::telemetry {
namespace {

using namespace std::chrono_literals;

class HandSetClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const noexcept override { return std::chrono::steady_clock::now(); }
  [[nodiscard]] std::chrono::system_clock::time_point wall() const noexcept override {
    return std::chrono::system_clock::time_point(std::chrono::microseconds(time.load()));
  }
  std::atomic<std::int64_t> time = 1'000'000;
};

Event event(const std::string& reason) {
  return {.kind = EventKind::kHit, .reason = reason};
}

template <class Condition>
bool becomes_true(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

/// A log in a directory of its own.
class Record {
 public:
  EventLog& start(std::size_t remembered = 100, std::uint64_t file_bytes = 1 << 20) {
    log_.reset();
    log_ = std::make_unique<EventLog>(
        EventLogOptions{.file = path(), .file_bytes = file_bytes, .remembered = remembered}, clock,
        Log::silent());
    return *log_;
  }
  /// Which writes what is left.
  void stop() { log_.reset(); }
  [[nodiscard]] std::filesystem::path path() const {
    return directory_.path() / "state" / "events";
  }
  void make_directory() const { std::filesystem::create_directory(path().parent_path()); }
  [[nodiscard]] std::vector<Event> written() const {
    std::vector<Event> events;
    std::istringstream lines(read_file(path(), 64 << 20));
    for (std::string line; std::getline(lines, line);) events.push_back(event_of(line).value());
    return events;
  }

  HandSetClock clock;

 private:
  tests::TemporaryDirectory directory_;
  std::unique_ptr<EventLog> log_;
};

std::vector<std::string> reasons(const EventLog::Page& page) {
  std::vector<std::string> all;
  for (const auto& event : page.events) all.push_back(event->reason);
  return all;
}
using Reasons = std::vector<std::string>;

TEST_CASE("what happened last is remembered, in order, and no more of it than was asked for") {
  Record record;
  EventLog& log = record.start(3, 0);
  for (const char* reason : {"a", "b", "c", "d"}) log.put(event(reason));
  CHECK(reasons(log.read({.limit = 10})) == Reasons{"b", "c", "d"});
  CHECK(reasons(log.read({.limit = 2})) == Reasons{"c", "d"});
  const auto page = log.read({.since = 0, .limit = 2});
  CHECK(reasons(page) == Reasons{"b", "c"});
  CHECK(page.missed);
  const auto rest = log.read({.since = page.last, .limit = 2});
  CHECK(reasons(rest) == Reasons{"d"});
  CHECK_FALSE(rest.missed);
  const auto none = log.read({.since = rest.last, .limit = 2});
  CHECK(none.events.empty());
  CHECK(none.last == rest.last);
}

TEST_CASE("sequences are the time, and grow whatever the clock does") {
  Record record;
  EventLog& log = record.start(10, 0);
  log.put(event("a"));
  log.put(event("b"));
  record.clock.time = 500;
  log.put(event("c"));
  record.clock.time = 2'000'000;
  log.put(event("d"));
  std::vector<std::uint64_t> sequences;
  for (const auto& each : log.read({.limit = 9}).events) sequences.push_back(each->sequence);
  CHECK(sequences == std::vector<std::uint64_t>{1'000'000, 1'000'001, 1'000'002, 2'000'000});
}

TEST_CASE("who waits gets an event when it comes, and is let go at the end") {
  Record record;
  EventLog& log = record.start(10, 0);
  log.put(event("a"));
  const std::uint64_t last = log.read({.limit = 1}).last;
  auto waiting = std::async(std::launch::async,
                            [&] { return log.read({.since = last, .limit = 10, .wait = 60s}); });
  log.put(event("b"));
  CHECK(reasons(waiting.get()) == Reasons{"b"});
  const std::uint64_t now = log.read({.limit = 1}).last;
  auto others = std::async(std::launch::async,
                           [&] { return log.read({.since = now, .limit = 10, .wait = 60s}); });
  log.end_waiting();
  CHECK(others.get().events.empty());
  CHECK(log.read({.since = now, .limit = 10, .wait = 60s}).events.empty());
}

TEST_CASE("who asks for what comes after the future goes on from now") {
  Record record;
  EventLog& log = record.start(10, 0);
  log.put(event("a"));
  const auto page = log.read({.since = 9'000'000, .limit = 10, .wait = 60s});
  CHECK(page.events.empty());
  CHECK(page.last == 1'000'000);
}

TEST_CASE("more than so many do not wait at once") {
  Record record;
  EventLog& log = record.start(10, 0);
  std::vector<std::future<EventLog::Page>> waiting;
  const auto wait = [&] { return log.read({.since = 0, .limit = 1, .wait = 60s}); };
  std::atomic<std::size_t> refused = 0;
  for (std::size_t i = 0; i <= EventLog::kMostWaiting; ++i) {
    waiting.push_back(std::async(std::launch::async, [&] {
      try {
        return wait();
      } catch (const Error& error) {
        if (error.code() == Errc::kBusy) ++refused;
        return EventLog::Page{};
      }
    }));
  }
  CHECK(becomes_true([&] { return refused == 1; }));
  log.end_waiting();
  for (auto& each : waiting) (void)each.get();
  CHECK(refused == 1);
}

TEST_CASE("every event is in the file, in order, and the next daemon remembers them") {
  Record record;
  record.make_directory();
  EventLog& log = record.start(50);
  for (int i = 0; i < 40; ++i) log.put(event(std::to_string(i)));
  CHECK(becomes_true([&] { return std::filesystem::exists(record.path()); }));
  for (int i = 40; i < 45; ++i) log.put(event(std::to_string(i)));
  const std::uint64_t last = log.read({.limit = 1}).last;
  record.stop();
  const auto written = record.written();
  REQUIRE(written.size() == 45);
  for (std::size_t i = 0; i < 45; ++i) CHECK(written[i].reason == std::to_string(i));

  record.clock.time = 0;  // a clock that has lost its battery
  EventLog& next = record.start(50);
  CHECK(next.read({.since = 0, .limit = 100}).events.size() == 45);
  CHECK_FALSE(next.read({.since = 0, .limit = 100}).missed);
  next.put(event("next"));
  CHECK(reasons(next.read({.since = last, .limit = 10})) == Reasons{"next"});
  CHECK(next.status().recorded == 1);
  record.stop();
  CHECK(record.written().size() == 46);

  CHECK(record.start(10).read({.since = 0, .limit = 100}).missed);
}

TEST_CASE("a daemon knows whether the one before it said that it stops") {
  Record record;
  record.make_directory();
  CHECK_FALSE(record.start().follows_a_death());  // there was none
  record.start().put({.kind = EventKind::kStart});
  CHECK(record.start().follows_a_death());
  record.start().put({.kind = EventKind::kStop});
  CHECK_FALSE(record.start().follows_a_death());
}

TEST_CASE("an event of a lease comes back from its line") {
  const Event event{.kind = EventKind::kLease,
                    .action = "late",
                    .name = "org/m",
                    .lease = "job-1",
                    .bytes = 7,
                    .sequence = 5,
                    .time = std::chrono::system_clock::time_point(1ms)};
  CHECK(event_of(line_of(event)) == event);
}

TEST_CASE("while the disk fails events are kept, and what is forgotten meanwhile is said") {
  Record record;  // there is no directory yet
  EventLog& log = record.start(10);
  log.put(event("first"));
  CHECK(becomes_true([&] { return !log.status().error.empty(); }));
  for (int i = 0; i < 15; ++i) log.put(event(std::to_string(i)));
  CHECK(log.read({.limit = 100}).events.size() == 10);
  record.make_directory();
  CHECK(becomes_true([&] { return log.status().error.empty(); }));
  record.stop();
  const auto written = record.written();
  REQUIRE(written.size() == 11);
  CHECK(written[0].reason == "5");
  CHECK(written[9].reason == "14");
  CHECK(written[10].kind == EventKind::kDropped);
  CHECK(written[10].reason.starts_with("6 events were not written in time"));
}

TEST_CASE("without a file nothing is written") {
  Record record;
  record.make_directory();
  record.start(10, 0).put(event("a"));
  record.stop();
  CHECK_FALSE(std::filesystem::exists(record.path()));
}

TEST_CASE("the log is a trace that a replay reads") {
  Record record;
  record.make_directory();
  EventLog& log = record.start();
  for (const auto& [snapshot, consumer] :
       {std::pair{"a", "pod-1"}, std::pair{"b", "pod-2"}, std::pair{"a", "pod-1"}}) {
    record.clock.time += 1'500'000;
    log.put(
        {.kind = EventKind::kReference, .snapshot = snapshot, .consumer = consumer, .bytes = 9});
    log.put({.kind = EventKind::kHit, .snapshot = snapshot, .consumer = consumer, .bytes = 4});
  }
  record.stop();
  policy::TraceParser parser({});
  parser.feed(read_file(record.path(), 1 << 20));
  const policy::Trace trace = std::move(parser).finish();
  CHECK(trace.skipped == 0);
  REQUIRE(trace.references.size() == 3);
  CHECK(trace.has_times);
  CHECK(trace.has_sizes);
  CHECK(trace.artifacts == 2);
  CHECK(trace.consumers == 2);
  CHECK(trace.references[2].artifact == 0);
  CHECK(trace.references[2].bytes == 9);
  CHECK(trace.references[2].time == 5500ms);
}

TEST_CASE("many threads record, read and wait at once") {
  Record record;
  record.make_directory();
  EventLog& log = record.start(64, 20'000);
  std::atomic<bool> over = false;
  std::atomic<bool> in_order = true;
  std::jthread follower([&] {
    std::uint64_t last = 0;
    while (!over) {
      const auto page = log.read({.since = last, .limit = 16, .wait = 10ms});
      for (const auto& each : page.events) {
        if (each->sequence <= last) in_order = false;
        last = each->sequence;
      }
      last = page.last;
    }
  });
  {
    std::vector<std::jthread> writers;
    for (int thread = 0; thread < 4; ++thread) {
      writers.emplace_back([&] {
        for (int i = 0; i < 500; ++i) log.put(event("x"));
      });
    }
  }
  over = true;
  follower.join();
  CHECK(in_order);
  CHECK(log.status().recorded >= 2000);
  record.stop();
  CHECK(std::filesystem::file_size(record.path()) <= 20'000);
}

}  // namespace
}  // namespace weightfs::telemetry
