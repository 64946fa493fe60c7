// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "telemetry/event_log.hpp"

#include "base/error.hpp"
#include "base/thread.hpp"
#include "telemetry/event_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace weightfs::telemetry {

namespace {

constexpr std::chrono::seconds kRetry{1};
/// Of one write.
constexpr std::uint64_t kBatchBytes = 256 << 10;

std::uint64_t microseconds(std::chrono::system_clock::time_point time) {
  const auto since_1970 =
      std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
  return static_cast<std::uint64_t>(std::max<decltype(since_1970)>(since_1970, 0));
}

}  // namespace

EventLog::EventLog(EventLogOptions options, const Clock& clock, Log log)
    : options_(std::move(options)),
      clock_(clock),
      log_(std::move(log)),
      file_(options_.file, options_.file_bytes) {
  if (options_.file_bytes == 0) return;
  remember_predecessor();
  thread_ = start_thread("events", [this](const std::stop_token& stop) { run(stop); });
}

EventLog::~EventLog() {
  end_waiting();
}

void EventLog::remember_predecessor() {
  try {
    EventFile::Tail tail = file_.read_last(options_.remembered);
    follows_a_death_ = !tail.events.empty() && tail.events.back().kind != EventKind::kStop;
    state_.with([&](State& state) {
      for (Event& event : tail.events) {
        // What a person wrote into it, or put together from several.
        if (event.sequence <= state.last) continue;
        state.last = event.sequence;
        state.events.push_back(std::make_shared<const Event>(std::move(event)));
      }
      state.written = state.events.size();
      if (!tail.whole && !state.events.empty()) {
        state.forgotten_to = state.events.front()->sequence - 1;
      }
    });
  } catch (const Error& error) {
    log_.warning("{}: earlier events are not remembered", error.what());
  }
}

void EventLog::put(Event event) noexcept {
  try {
    state_.with([&](State& state) { put_into(state, std::move(event)); });
    changed_.notify_all();
  } catch (const std::exception&) {
    // No memory: nobody would hear of that either.
  }
}

void EventLog::put_into(State& state, Event event) const {
  event.time = clock_.wall();
  event.sequence = std::max(state.last + 1, microseconds(event.time));
  state.events.push_back(std::make_shared<const Event>(std::move(event)));
  state.last = state.events.back()->sequence;
  ++state.status.recorded;
  while (state.events.size() > options_.remembered) {
    state.forgotten_to = state.events.front()->sequence;
    state.events.pop_front();
    ++state.forgotten;
  }
}

EventLog::Page EventLog::read(const Query& query) {
  const auto deadline = std::chrono::steady_clock::now() + query.wait;
  auto state = state_.lock();
  Page page;
  if (!query.since) {
    const std::size_t count = std::min(query.limit, state->events.size());
    page.events.assign(state->events.end() - static_cast<std::ptrdiff_t>(count),
                       state->events.end());
    page.last = state->last;
    return page;
  }
  // Of another log, whose clock was ahead: who follows goes on from here.
  const std::uint64_t since = std::min(*query.since, state->last);
  if (since == state->last && since == *query.since && query.wait.count() > 0) {
    if (state->waiting >= kMostWaiting) {
      throw Error(Errc::kBusy, fmt::format("{} wait for events already", state->waiting));
    }
    ++state->waiting;
    state.wait_until(changed_, deadline,
                     [&] { return state->waiting_ended || state->last > since; });
    --state->waiting;
  }
  page.missed = since < state->forgotten_to;
  const auto first = std::ranges::upper_bound(
      state->events, since, {}, [](const EventPtr& event) { return event->sequence; });
  const auto there = static_cast<std::size_t>(state->events.end() - first);
  const auto count = std::min(query.limit, there);
  page.events.assign(first, first + static_cast<std::ptrdiff_t>(count));
  page.last = page.events.empty() ? since : page.events.back()->sequence;
  return page;
}

void EventLog::end_waiting() noexcept {
  state_.with([](State& state) { state.waiting_ended = true; });
  changed_.notify_all();
}

EventLogStatus EventLog::status() const {
  return state_.with([](const State& state) { return state.status; });
}

void EventLog::run(const std::stop_token& stop) {
  while (const auto batch = next_batch(stop)) {
    if (write(*batch)) continue;
    if (pause(stop, kRetry)) continue;
    const std::uint64_t lost = state_.with(
        [](const State& state) { return state.forgotten + state.events.size() - state.written; });
    return log_.warning("{} events are lost: the daemon ends, and they cannot be written", lost);
  }
}

/// What is not written yet, as much of it as goes at once. nullopt: all is, and the end has come.
std::optional<EventLog::Batch> EventLog::next_batch(const std::stop_token& stop) {
  Batch batch;
  std::vector<EventPtr> events;
  {
    auto state = state_.lock();
    const auto something = [&] { return state->written < state->forgotten + state->events.size(); };
    state.wait(changed_, stop, something);
    if (!something()) return std::nullopt;
    batch.end = std::max(state->written, state->forgotten);
    const auto first =
        state->events.begin() + static_cast<std::ptrdiff_t>(batch.end - state->forgotten);
    events.assign(first, state->events.end());
    state->status.dropped += batch.end - state->written;
    state->untold += batch.end - state->written;
    state->written = batch.end;
  }
  const std::uint64_t most = std::min(kBatchBytes, options_.file_bytes);
  for (const EventPtr& event : events) {
    const std::string line = line_of(*event) + '\n';
    if (!batch.lines.empty() && batch.lines.size() + line.size() > most) break;
    batch.lines += line;
    ++batch.end;
  }
  return batch;
}

bool EventLog::write(const Batch& batch) {
  std::string failure;
  try {
    file_.append(batch.lines);
  } catch (const Error& error) {
    failure = error.what();
  }
  bool news = false;
  bool told = false;
  state_.with([&](State& state) {
    news = state.status.error != failure;
    state.status.error = failure;
    if (!failure.empty()) return;
    state.written = batch.end;
    told = state.untold > 0;
    if (!told) return;
    // Not before there is a disk that takes it: else these would drive out what they tell of.
    put_into(state, {.kind = EventKind::kDropped,
                     .reason = fmt::format("{} events were not written in time", state.untold)});
    state.untold = 0;
  });
  if (told) changed_.notify_all();
  if (news && failure.empty()) log_.info("events are written again");
  if (news && !failure.empty()) log_.warning("events are not written: {}", failure);
  return failure.empty();
}

}  // namespace weightfs::telemetry
