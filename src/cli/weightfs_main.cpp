// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/weightfs_main.hpp"

#include "base/environment.hpp"
#include "cli/command_line.hpp"
#include "cli/commands.hpp"

#include <sys/ioctl.h>
#include <unistd.h>
#include <iostream>
#include <string_view>
#include <vector>

namespace weightfs::cli {

namespace {

unsigned terminal_columns() noexcept {
  constexpr unsigned kUsual = 80;
  winsize size{};
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  }
  return kUsual;
}

Environment process_environment() {
  Environment environment;
  for (const char* const* entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

}  // namespace

int weightfs_main(std::span<const std::string> arguments, Streams& streams,
                  const Environment& environment) {
  return static_cast<int>(CommandLine(command_table()).run(arguments, streams, environment));
}

int weightfs_main(int argc, const char* const* argv) {
  Streams streams{.out = std::cout,
                  .err = std::cerr,
                  .out_is_terminal = ::isatty(STDOUT_FILENO) == 1,
                  .err_is_terminal = ::isatty(STDERR_FILENO) == 1,
                  .columns = terminal_columns()};
  hide_environment();
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  const int status = weightfs_main(arguments, streams, process_environment());
  // What could not be printed was not done: a full disk behind a redirection must not look like
  // success.
  return std::cout.flush() ? status : 1;
}

}  // namespace weightfs::cli
