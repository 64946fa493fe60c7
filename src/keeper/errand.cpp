// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "keeper/errand.hpp"

#include "base/error.hpp"
#include "keeper/pidfd.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <utility>

namespace weightfs::keeper {

namespace {

[[noreturn]] void run_child(const std::function<Errand::Result()>& work, int answer) {
  const Errand::Result result = work();
  if (::write(answer, &result.value, sizeof result.value) < 0) ::_exit(1);
  // In the order of their numbers, as the exit would close them, the one that blocks could come
  // first, and keep the daemon's socket and /dev/fuse open.
  if (result.closed_last >= 0) {
    const auto last = static_cast<unsigned>(result.closed_last);
    ::close_range(last + 1, ~0U, 0);
    if (last > 0) ::close_range(0, last - 1, 0);
  }
  ::_exit(0);
}

}  // namespace

Errand::Errand(const std::function<Result()>& work) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) throw_errno(errno, "create a pipe");
  answer_ = Fd(ends[0]);
  const Fd write_end(ends[1]);
  pid_ = ::fork();
  if (pid_ < 0) throw_errno(errno, "fork");
  if (pid_ == 0) run_child(work, write_end.value());
  process_ = open_pidfd(pid_);
  if (!process_) {
    const int error = errno;
    ::kill(pid_, SIGKILL);
    throw_errno(error, "pidfd_open");
  }
}

Errand::Errand(Errand&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      process_(std::move(other.process_)),
      answer_(std::move(other.answer_)),
      value_(other.value_) {
}

Errand::~Errand() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, WNOHANG);  // where it is stuck, init gets it after the keeper
}

bool Errand::wait(std::chrono::milliseconds patience) {
  if (pid_ < 0) return true;
  pollfd ended{.fd = process_.value(), .events = POLLIN, .revents = 0};
  if (::poll(&ended, 1, static_cast<int>(patience.count())) <= 0) return false;
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
  std::int64_t value = 0;
  if (::read(answer_.value(), &value, sizeof value) == sizeof value) value_ = value;
  return true;
}

}  // namespace weightfs::keeper
