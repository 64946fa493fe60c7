// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/error.hpp"
#include "base/synchronized.hpp"
#include "control/operations.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

namespace weightfs::control {

using JobId = std::uint64_t;

/// A job as it stands: `result` once it is done, `error` once it failed, neither while it runs.
struct JobView {
  JobId id = 0;
  api::JobProgress progress;
  std::optional<std::string> result;
  std::optional<Error> error;

  [[nodiscard]] bool running() const noexcept { return !result && !error; }
};

/// Runs long operations, each on a thread of its own ("job-N"), so that a request for one can be
/// answered before it is over and asked about again. One running job per subject: starting it again
/// joins it. At most kMaxRunning run; the last kMaxKept that are over can still be asked about.
///
/// Thread-safe. The destructor requests the stop of all jobs and joins them; nobody may be in
/// wait() by then.
class JobTable {
 public:
  static constexpr std::size_t kMaxRunning = 32;
  static constexpr std::size_t kMaxKept = 128;
  using Body = std::function<std::string(const Job&)>;

  JobTable() = default;
  JobTable(const JobTable&) = delete;
  JobTable& operator=(const JobTable&) = delete;
  ~JobTable();

  /// `subject` says what is done to what, as "update org/name". Error(kBusy) when too many run.
  [[nodiscard]] JobId start(const std::string& subject, Body body);
  /// The job once it is over, or as it stands after `patience`. Error(kNotFound) where it is not
  /// known.
  [[nodiscard]] JobView wait(JobId id, std::chrono::milliseconds patience);
  /// From now on wait() does not wait.
  void end_waiting() noexcept;

 private:
  struct Entry {
    std::string subject;
    JobView view;
    std::jthread thread;
  };
  struct State {
    bool waiting_ended = false;
    JobId last_id = 0;
    std::map<JobId, Entry> jobs;
  };

  void run(JobId id, const Body& body, std::stop_token stop);
  void change(JobId id, const std::function<void(JobView&)>& how);

  Synchronized<State> state_;
  std::condition_variable_any changed_;
};

}  // namespace weightfs::control
