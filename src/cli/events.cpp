// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/error.hpp"
#include "base/quantity.hpp"
#include "cli/commands.hpp"
#include "cli/event_text.hpp"
#include "cli/printable.hpp"
#include "control/json_codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <thread>

namespace weightfs::cli {

namespace {

constexpr unsigned kUsualCount = 100;
constexpr unsigned kMostCount = 1'000'000;
/// Of one answer.
constexpr std::uint64_t kPage = 1000;
constexpr std::uint64_t kWaitSeconds = 20;
constexpr std::chrono::seconds kRetry{1};

/// Sequences are microseconds since 1970.
std::uint64_t sequence_before(std::chrono::milliseconds age) {
  const auto then = std::chrono::system_clock::now() - age;
  const auto microseconds =
      std::chrono::duration_cast<std::chrono::microseconds>(then.time_since_epoch()).count();
  return static_cast<std::uint64_t>(std::max<decltype(microseconds)>(microseconds, 0));
}

class EventsCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.flag("--follow", "Go on with what happens next, until interrupted.", follow_);
    options.option({"--since", "TIME", "What happened in so much time up to now (30m, 12h)."},
                   since_);
    options.number({"-n", "N", "The last N; 100 without --since."}, count_, 1, kMostCount);
  }

  ExitCode run(Context& context) override {
    if (!since_.empty()) since_sequence_ = sequence_before(age());
    api::Client client = context.client();
    std::uint64_t last = print_past(context, client);
    while (follow_ && context.streams().out) last = print_next(context, client, last);
    return ExitCode::kDone;
  }

 private:
  [[nodiscard]] std::chrono::milliseconds age() const {
    try {
      return parse_duration(since_);
    } catch (const Error& error) {
      throw UsageError(fmt::format("--since: {}", error.what()));
    }
  }

  /// Returns where to go on.
  std::uint64_t print_past(Context& context, api::Client& client) const {
    const std::uint64_t count = count_ > 0 ? count_ : kUsualCount;
    if (!since_sequence_) {
      const api::EventPage page = client.events({.limit = count});
      print(context, page.events);
      return page.last;
    }
    std::deque<api::Event> events;
    api::EventPage page{.last = *since_sequence_};
    do {
      const bool first = page.last == *since_sequence_;
      page = client.events({.since = page.last, .limit = kPage});
      if (first && page.missed) say_missed(context);
      events.insert(events.end(), page.events.begin(), page.events.end());
      while (count_ > 0 && events.size() > count_) events.pop_front();
    } while (page.events.size() == kPage);
    print(context, {events.begin(), events.end()});
    return page.last;
  }

  std::uint64_t print_next(Context& context, api::Client& client, std::uint64_t last) {
    try {
      const api::EventPage page =
          client.events({.since = last, .limit = kPage, .wait_seconds = kWaitSeconds});
      if (away_) context.streams().err << "weightfs: the daemon is back" << std::endl;
      away_ = false;
      if (page.missed) say_missed(context);
      print(context, page.events);
      return page.last;
    } catch (const api::ClientError& error) {
      // Its successor, if there is one, has remembered what this one wrote.
      if (!away_) {
        context.streams().err << fmt::format("weightfs: {}; trying again", printable(error.what()))
                              << std::endl;
      }
      away_ = true;
      std::this_thread::sleep_for(kRetry);
      return last;
    }
  }

  static void print(Context& context, const std::vector<api::Event>& events) {
    for (const api::Event& event : events) {
      context.streams().out << (context.json() ? control::encode(event) : event_text(event))
                            << '\n';
    }
    if (!events.empty()) context.streams().out.flush();
  }

  static void say_missed(Context& context) {
    context.streams().err
        << "weightfs: earlier events are not remembered any more; events.jsonl in the state "
           "directory may have them"
        << std::endl;
  }

  bool follow_ = false;
  std::string since_;
  unsigned count_ = 0;
  std::optional<std::uint64_t> since_sequence_;
  bool away_ = false;
};

}  // namespace

CommandEntry events_command() {
  return {
      .name = "events",
      .summary = "Show what the cache did, and go on showing it",
      .text =
          "One line for each event: references (a consumer begins to use a model), hits and misses "
          "(it opens a file that is complete, or is not), fills, verifications, admissions, "
          "evictions, files that there was no room for, names that were added, removed, updated, "
          "flipped or pinned. With --json each is a JSON object on a line of its own, as in "
          "events.jsonl in the state directory, which has more of the past than the daemon "
          "remembers, and which weightfs replay reads.\n\n"
          "A consumer is a cgroup, else a session. With --follow a daemon that is started again is "
          "waited for, and what it has done since is shown.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<EventsCommand>()); },
  };
}

}  // namespace weightfs::cli
