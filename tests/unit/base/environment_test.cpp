// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/environment.hpp"

#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

namespace {

/// What is wrong in a process that hid its environment; 0: nothing.
int hidden_badly() {
  const std::string path = std::getenv("PATH");
  weightfs::hide_environment();
  const char* const after = std::getenv("PATH");
  if (after == nullptr || path != after) return 1;
  std::ifstream file("/proc/self/environ");
  bool names_are_there = false;
  for (std::string entry; std::getline(file, entry, '\0');) {
    if (entry.starts_with("PATH=")) names_are_there = true;
    const std::size_t equals = entry.find('=');
    if (equals != std::string::npos && equals + 1 != entry.size()) return 2;
  }
  if (!names_are_there) return 3;
  // What is started gets the values.
  ::setenv("EXPECTED", path.c_str(), 1);
  return std::system("test \"$PATH\" = \"$EXPECTED\"") == 0 ? 0 : 4;
}

}  // namespace

TEST_CASE("a hidden environment is as before for the process and empty in /proc") {
  REQUIRE(std::getenv("PATH") != nullptr);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(hidden_badly());
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
