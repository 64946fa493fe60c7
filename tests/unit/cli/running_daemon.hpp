// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "../control/fake_operations.hpp"
#include "../control/temporary_directory.hpp"
#include "base/log.hpp"
#include "cli/weightfs_main.hpp"
#include "control/router.hpp"
#include "control/server.hpp"

#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace weightfs::tests {

struct Outcome {
  int status = 0;
  std::string out;
  std::string err;
};

struct Terminal {
  bool out = false;
  bool err = false;
};

/// Runs the program in this process.
inline Outcome run_program(const std::vector<std::string>& arguments, Terminal terminal = {},
                           const cli::Environment& environment = {}) {
  std::ostringstream out;
  std::ostringstream err;
  cli::Streams streams{
      .out = out, .err = err, .out_is_terminal = terminal.out, .err_is_terminal = terminal.err};
  const int status = cli::weightfs_main(arguments, streams, environment);
  return {status, out.str(), err.str()};
}

/// The control server of a daemon of plain values, and the program told to talk to it.
class RunningDaemon {
 public:
  RunningDaemon() { start(); }

  void start() {
    server_.emplace(control::ListenSocket(socket(), 0600), router_, control::ServerOptions{},
                    Log::silent());
  }
  void stop() { server_.reset(); }

  [[nodiscard]] std::string socket() const { return (directory_.path() / "s").string(); }
  [[nodiscard]] const std::filesystem::path& directory() const { return directory_.path(); }

  Outcome run(std::vector<std::string> arguments, Terminal terminal = {}) const {
    arguments.insert(arguments.begin(), {"--socket", socket()});
    return run_program(arguments, terminal);
  }

  FakeOperations operations;

 private:
  TemporaryDirectory directory_;
  control::Router router_{operations, Log::silent()};
  std::optional<control::Server> server_;
};

}  // namespace weightfs::tests
