// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/job_table.hpp"

#include <catch2/catch_test_macros.hpp>

#include <atomic>
#include <future>
#include <stdexcept>
#include <vector>

using namespace std::chrono_literals;
using namespace weightfs;
using namespace weightfs::control;

namespace {

/// Runs until it is told to stop.
std::string run_until_stopped(const Job& job) {
  std::promise<void> stopped;
  const std::stop_callback on_stop(job.stop, [&] { stopped.set_value(); });
  stopped.get_future().wait();
  throw Error(Errc::kCancelled, "stopped");
}

}  // namespace

TEST_CASE("a job gives its result to whoever asks, as often as they ask") {
  JobTable jobs;
  const JobId id = jobs.start("add x", [](const Job&) { return std::string("{}"); });
  for (int i = 0; i < 2; ++i) {
    const JobView view = jobs.wait(id, 10s);
    CHECK_FALSE(view.running());
    CHECK(view.result == "{}");
  }
}

TEST_CASE("a job that throws fails with the error's code, foreign exceptions are internal") {
  JobTable jobs;
  const JobId first =
      jobs.start("a", [](const Job&) -> std::string { throw Error(Errc::kPermission, "gated"); });
  const JobId second =
      jobs.start("b", [](const Job&) -> std::string { throw std::runtime_error("oops"); });
  CHECK(jobs.wait(first, 10s).error->code() == Errc::kPermission);
  CHECK(jobs.wait(second, 10s).error->code() == Errc::kInternal);
}

TEST_CASE("starting a running job again joins it, a finished one runs anew") {
  std::promise<void> gate;
  const auto opened = gate.get_future().share();
  std::atomic<int> runs = 0;
  JobTable jobs;  // ends before what its jobs use
  const auto body = [&](const Job& job) {
    ++runs;
    job.report({"fetching", 3, 9});
    opened.wait();
    return std::string("done");
  };
  const JobId id = jobs.start("update x", body);
  CHECK(jobs.start("update x", body) == id);
  JobView view = jobs.wait(id, 0s);
  CHECK(view.running());
  while (view.progress.total == 0) view = jobs.wait(id, 1ms);
  CHECK(view.progress == api::JobProgress{"fetching", 3, 9});
  gate.set_value();
  CHECK(jobs.wait(id, 10s).result == "done");
  CHECK(runs == 1);
  CHECK(jobs.start("update x", body) != id);
}

TEST_CASE("an unknown job is not found") {
  JobTable jobs;
  CHECK_THROWS_AS(jobs.wait(7, 0s), Error);
}

TEST_CASE("only so many jobs run, and only so many results are kept") {
  JobTable jobs;
  for (std::size_t i = 0; i < JobTable::kMaxRunning; ++i) {
    (void)jobs.start("long " + std::to_string(i), run_until_stopped);
  }
  CHECK_THROWS_AS(jobs.start("one more", run_until_stopped), Error);

  JobTable many;
  const JobId first = many.start("0", [](const Job&) { return std::string(); });
  for (int i = 1; i < 300; ++i) {
    const JobId id = many.start(std::to_string(i), [](const Job&) { return std::string(); });
    CHECK_FALSE(many.wait(id, 10s).running());
  }
  CHECK_THROWS_AS(many.wait(first, 0s), Error);
}

TEST_CASE(
    "whoever waits is let go when waiting ends, and running jobs are stopped by the destructor") {
  std::future<JobView> waiting;
  {
    JobTable jobs;
    const JobId id = jobs.start("long", run_until_stopped);
    waiting = std::async(std::launch::async, [&] { return jobs.wait(id, 1h); });
    jobs.end_waiting();
    CHECK(waiting.get().running());
  }
}
