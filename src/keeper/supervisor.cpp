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

Supervisor::Supervisor(DaemonOptions options, std::chrono::milliseconds grace, Log log)
    : options_(std::move(options)), grace_(grace), log_(std::move(log)), due_(TimePoint{}) {
}

int Supervisor::descriptor() const noexcept {
  return process_ ? process_->descriptor() : -1;
}

std::optional<Fd> Supervisor::advance(TimePoint now) {
  if (!due_ || *due_ > now) return std::nullopt;
  due_.reset();
  if (!process_) return start(now);
  log_.warning("the daemon {} does not end: killing it", process_->pid());
  process_->signal(SIGKILL);
  return std::nullopt;
}

std::optional<Fd> Supervisor::start(TimePoint now) {
  try {
    auto [ours, theirs] = socket_pair();
    process_.emplace(options_, theirs);
    started_ = now;
    hello_ = RestartPolicy::Hello::kSilent;
    log_.info("started the daemon, pid {}", process_->pid());
    return std::move(ours);
  } catch (const Error& error) {  // the machine is short of something: no reason to unmount
    log_.error("cannot start the daemon: {}", error.what());
    due_ = now + RestartPolicy::kLongestPause;
    return std::nullopt;
  }
}

std::optional<int> Supervisor::reap(TimePoint now) {
  const pid_t pid = process_->pid();
  const int status = process_->wait();
  process_.reset();
  due_.reset();
  if (last_) {
    log_.info("the daemon {} {}", pid, describe(status));
    return 0;
  }
  if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == kDaemonFatal)) {
    log_.info("the daemon {} {}: not starting another", pid, describe(status));
    return WEXITSTATUS(status);
  }
  const auto life = std::chrono::duration_cast<RestartPolicy::Duration>(now - started_);
  const std::optional<RestartPolicy::Duration> pause = policy_.after(life, hello_);
  if (!pause) {
    log_.error("the daemon {} {}; it has not come up {} times in a row: giving up", pid,
               describe(status), RestartPolicy::kSilentLives);
    return kKeeperGaveUp;
  }
  log_.warning("the daemon {} {}: starting another in {} ms", pid, describe(status),
               pause->count());
  due_ = now + *pause;
  return std::nullopt;
}

void Supervisor::expect_end(TimePoint now) {
  if (process_ && !due_) due_ = now + grace_;
}

void Supervisor::stop(TimePoint now) {
  last_ = true;
  due_.reset();
  if (!process_) return;
  process_->signal(SIGTERM);
  due_ = now + grace_;
}

}  // namespace weightfs::keeper
