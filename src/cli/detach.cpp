// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/detach.hpp"

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/file.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <thread>

namespace weightfs::cli {

namespace {

void become_child(const Fd& log) {
  ::setsid();
  const Fd nothing = open_file("/dev/null", O_RDONLY);
  ::dup2(nothing.value(), STDIN_FILENO);
  ::dup2(log.value(), STDOUT_FILENO);
  ::dup2(log.value(), STDERR_FILENO);
}

}  // namespace

Detached detach(const DetachOptions& options) {
  const Fd log = open_file(options.log_file, O_WRONLY | O_CREAT | O_APPEND, 0640);
  const pid_t child = ::fork();
  if (child < 0) throw_errno(errno, "fork");
  if (child == 0) {
    become_child(log);
    return Detached::kChild;
  }
  constexpr std::chrono::milliseconds kPoll{20};
  const auto deadline = std::chrono::steady_clock::now() + options.patience;
  while (std::chrono::steady_clock::now() < deadline) {
    if (::waitpid(child, nullptr, WNOHANG) == child) return Detached::kFailed;
    if (options.is_ready()) return Detached::kReady;
    std::this_thread::sleep_for(kPoll);
  }
  ::kill(child, SIGTERM);
  ::waitpid(child, nullptr, 0);
  return Detached::kFailed;
}

}  // namespace weightfs::cli
