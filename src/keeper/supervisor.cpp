// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "keeper/supervisor.hpp"

#include "base/error.hpp"
#include "keeper/exit_status.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <cerrno>
#include <csignal>
#include <utility>

namespace weightfs::keeper {

namespace {

std::string describe(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was killed by signal {}", WTERMSIG(status));
  return fmt::format("ended with status {}", WEXITSTATUS(status));
}

/// {the keeper's end, which does not block; the daemon's}
std::pair<Fd, Fd> socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw_errno(errno, "create a socket pair");
  }
  std::pair<Fd, Fd> pair{ends[0], ends[1]};
  if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) throw_errno(errno, "set O_NONBLOCK");
  return pair;
}

}  // namespace

Supervisor::Supervisor(SupervisorOptions options, Log log)
    : options_(std::move(options)), log_(std::move(log)), due_(Due{TimePoint{}, Step::kStart}) {
}

std::optional<Supervisor::TimePoint> Supervisor::due() const noexcept {
  return due_ ? std::optional(due_->at) : std::nullopt;
}

int Supervisor::descriptor() const noexcept {
  return process_ ? process_->descriptor() : -1;
}

std::optional<Fd> Supervisor::advance(TimePoint now) {
  if (!due_ || due_->at > now) return std::nullopt;
  const Step step = std::exchange(due_, std::nullopt)->step;
  switch (step) {
    case Step::kStart:
      return start(now);
    case Step::kKill:
      log_.warning("the daemon {} does not {}: killing it", process_->pid(),
                   !up_ && !last_ ? "come up" : "end");
      process_->signal(SIGKILL);
      if (last_) due_ = Due{now + options_.kill_patience, Step::kAbort};
      break;
    case Step::kAbort:
      // It waits in the kernel for an answer that nobody is left to give.
      log_.error("the killed daemon {} does not end: aborting the connection", process_->pid());
      options_.abort_connection();
      due_ = Due{now + options_.kill_patience, Step::kLeave};
      break;
    case Step::kLeave:
      log_.error("the killed daemon {} does not end: not waiting for it", process_->pid());
      process_->leave();
      process_.reset();
      break;
  }
  return std::nullopt;
}

std::optional<Fd> Supervisor::start(TimePoint now) {
  try {
    auto [ours, theirs] = socket_pair();
    process_.emplace(options_.daemon, theirs);
    started_ = now;
    up_.reset();
    due_ = Due{now + options_.start_patience, Step::kKill};
    log_.info("started the daemon, pid {}", process_->pid());
    return std::move(ours);
  } catch (const Error& error) {  // the machine is short of something: no reason to unmount
    log_.error("cannot start the daemon: {}", error.what());
    due_ = Due{now + RestartPolicy::kLongestPause, Step::kStart};
    return std::nullopt;
  }
}

bool Supervisor::hangs(TimePoint now) {
  if (!process_ || last_ || !process_->main_thread_ended()) {
    hanging_since_.reset();
    return false;
  }
  if (!hanging_since_) hanging_since_ = now;
  return now - *hanging_since_ >= options_.kill_patience;
}

std::size_t Supervisor::left_behind() {
  std::erase_if(left_behind_, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
  return left_behind_.size();
}

std::optional<int> Supervisor::reap(TimePoint now) {
  const pid_t pid = process_->pid();
  int status = SIGKILL;  // as wait(2) says that it was killed
  if (hangs(now)) {
    log_.error("a thread of the killed daemon {} hangs in the kernel: going on without it", pid);
    left_behind_.push_back(pid);
    process_->leave();
  } else {
    status = process_->wait();
  }
  process_.reset();
  due_.reset();
  hanging_since_.reset();
  return after_end(status, pid, now);
}

std::optional<int> Supervisor::after_end(int status, pid_t pid, TimePoint now) {
  if (last_) {
    log_.info("the daemon {} {}", pid, describe(status));
    return 0;
  }
  const auto since = [&](TimePoint begin) {
    return std::chrono::duration_cast<RestartPolicy::Duration>(now - begin);
  };
  RestartPolicy::Life life{.length = since(started_), .served = std::nullopt};
  if (up_) life.served = since(*up_);
  const std::optional<RestartPolicy::Duration> pause = policy_.after(life);
  const bool ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  const bool fatal = WIFEXITED(status) && WEXITSTATUS(status) == kDaemonFatal;
  if (ended || (fatal && !policy_.was_up())) {
    log_.info("the daemon {} {}: not starting another", pid, describe(status));
    return WEXITSTATUS(status);
  }
  if (!pause) {
    log_.error("the daemon {} {}; none comes up: giving up", pid, describe(status));
    return kKeeperGaveUp;
  }
  log_.warning("the daemon {} {}: starting another in {} ms", pid, describe(status),
               pause->count());
  due_ = Due{now + *pause, Step::kStart};
  return std::nullopt;
}

void Supervisor::reload() const noexcept {
  if (process_ && up_) process_->signal(SIGHUP);
}

void Supervisor::note_up(TimePoint now) noexcept {
  if (up_ || !process_) return;
  up_ = now;
  if (!last_) due_.reset();
}

void Supervisor::expect_end(TimePoint now) {
  if (!process_ || last_) return;
  const TimePoint end = now + options_.stop_grace;
  if (!due_ || due_->at > end) due_ = Due{end, Step::kKill};
}

void Supervisor::stop(TimePoint now) {
  last_ = true;
  due_.reset();
  if (!process_) return;
  process_->signal(SIGTERM);
  due_ = Due{now + options_.stop_grace, Step::kKill};
}

}  // namespace weightfs::keeper
