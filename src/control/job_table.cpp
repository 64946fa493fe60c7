// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/job_table.hpp"

#include "base/thread.hpp"

#include <fmt/format.h>

#include <exception>
#include <system_error>
#include <utility>
#include <vector>

namespace weightfs::control {

JobTable::~JobTable() {
  auto jobs = state_.with([](State& state) { return std::exchange(state.jobs, {}); });
  for (auto& [id, entry] : jobs) entry.thread.request_stop();
  // The threads are joined here, without the lock: they still report into the (now empty) table.
}

JobId JobTable::start(const std::string& subject, Body body) {
  std::vector<std::jthread> over;  // joined without the lock; they have nothing left to do
  auto state = state_.lock();
  std::size_t running = 0;
  for (const auto& [id, entry] : state->jobs) {
    if (!entry.view.running()) continue;
    if (entry.subject == subject) return id;
    ++running;
  }
  if (running >= kMaxRunning) {
    throw Error(Errc::kBusy, fmt::format("{} long operations are running already", running));
  }
  for (auto entry = state->jobs.begin();
       entry != state->jobs.end() && state->jobs.size() >= kMaxRunning + kMaxKept;) {
    if (entry->second.view.running()) {
      ++entry;
    } else {
      over.push_back(std::move(entry->second.thread));
      entry = state->jobs.erase(entry);
    }
  }

  const JobId id = ++state->last_id;
  Entry& entry = state->jobs[id];
  entry.subject = subject;
  entry.view.id = id;
  const auto thread_body = [this, id, body = std::move(body)](std::stop_token stop) {
    run(id, body, std::move(stop));
  };
  try {
    entry.thread = start_thread(fmt::format("job-{}", id), thread_body);
  } catch (const std::system_error& error) {
    state->jobs.erase(id);
    throw Error(Errc::kBusy, fmt::format("no thread can be started: {}", error.what()));
  }
  return id;
}

void JobTable::run(JobId id, const Body& body, std::stop_token stop) {
  const Job job{.stop = std::move(stop), .report = [this, id](const api::JobProgress& progress) {
                  change(id, [&](JobView& view) { view.progress = progress; });
                }};
  try {
    std::string result = body(job);
    change(id, [&](JobView& view) { view.result = std::move(result); });
  } catch (const Error& error) {
    change(id, [&](JobView& view) { view.error = error; });
  } catch (const std::exception& error) {
    change(id, [&](JobView& view) { view.error = Error(Errc::kInternal, error.what()); });
  }
}

void JobTable::change(JobId id, const std::function<void(JobView&)>& how) {
  state_.with([&](State& state) {
    const auto found = state.jobs.find(id);
    if (found != state.jobs.end()) how(found->second.view);
  });
  changed_.notify_all();
}

JobView JobTable::wait(JobId id, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  auto state = state_.lock();
  const auto over = [&] {
    const auto found = state->jobs.find(id);
    return state->waiting_ended || found == state->jobs.end() || !found->second.view.running();
  };
  state.wait_until(changed_, deadline, over);
  const auto found = state->jobs.find(id);
  if (found == state->jobs.end()) {
    throw Error(Errc::kNotFound, fmt::format("no job {} is known (any more)", id));
  }
  return found->second.view;
}

void JobTable::end_waiting() noexcept {
  state_.with([](State& state) { state.waiting_ended = true; });
  changed_.notify_all();
}

}  // namespace weightfs::control
