// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/detach.hpp"

#include "../control/temporary_directory.hpp"
#include "base/file.hpp"

#include <catch2/catch_test_macros.hpp>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <string>

using namespace weightfs;
using namespace weightfs::cli;

TEST_CASE("a detached child is asked for by its pid, and writes to the log") {
  const tests::TemporaryDirectory place;
  const auto path = place.path() / "log";
  const Fd log = open_file(path, O_RDWR | O_CREAT | O_APPEND, 0600);
  pid_t child = 0;
  const Detached outcome = detach({.log = log, .is_ready = [&](pid_t pid) {
                                     child = pid;
                                     return read_file(path, 100) == std::to_string(pid);
                                   }});
  if (outcome.as == Detached::As::kChild) {
    const std::string pid = std::to_string(::getpid());
    if (::write(STDOUT_FILENO, pid.data(), pid.size()) < 0) ::_exit(1);
    for (;;) ::pause();
  }
  CHECK(outcome.as == Detached::As::kReady);
  REQUIRE(child > 0);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_CASE("a detached child that ends is a failure with its status, whoever else is ready") {
  const tests::TemporaryDirectory place;
  const Fd log = open_file(place.path() / "log", O_RDWR | O_CREAT | O_APPEND, 0600);
  const Detached outcome = detach({.log = log, .is_ready = [](pid_t) { return false; }});
  if (outcome.as == Detached::As::kChild) ::_exit(3);
  CHECK(outcome.as == Detached::As::kFailed);
  CHECK(outcome.exit_status == 3);
}
