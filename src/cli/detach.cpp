// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/detach.hpp"

#include "base/error.hpp"
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
  const pid_t child = ::fork();
  if (child < 0) throw_errno(errno, "fork");
  if (child == 0) {
    become_child(options.log);
    return {.as = Detached::As::kChild};
  }
  constexpr std::chrono::milliseconds kPoll{20};
  const auto deadline = std::chrono::steady_clock::now() + options.patience;
  while (std::chrono::steady_clock::now() < deadline) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == child) {
      return {.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 1};
    }
    if (options.is_ready(child)) return {.as = Detached::As::kReady};
    std::this_thread::sleep_for(kPoll);
  }
  ::kill(child, SIGTERM);
  ::waitpid(child, nullptr, 0);
  return {};
}

}  // namespace weightfs::cli
