// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors

// What a supervised daemon does towards its keeper and nothing else: says hello, comes up, writes
// its pid to a file, and ends with 0 on a SIGTERM or when the keeper is gone.
//
//   supervised_daemon KEEPER-FD PID-FILE [fails|stuck]
//
// fails: ends with 3 after hello. stuck: waits in the kernel for an answer of its own, which does
// not come, and which no signal ends.

#include "base/error.hpp"
#include "base/file.hpp"
#include "keeper/keeper_client.hpp"
#include "keeper/session_memory.hpp"
#include "toy_daemon.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

int main(int count, char** arguments) {
  using namespace weightfs;
  if (count < 3) return 2;
  const std::string_view how = count > 3 ? arguments[3] : "";
  try {
    sigset_t terminate;
    ::sigemptyset(&terminate);
    ::sigaddset(&terminate, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &terminate, nullptr);
    const Fd signals(::signalfd(-1, &terminate, SFD_CLOEXEC));

    keeper::KeeperClient client{Fd(std::stoi(arguments[1]))};
    const keeper::Session session = client.hello();
    keeper::SessionMemory(session.memory).append("life");
    if (how == "fails") return 3;
    client.set_read_ahead(128);
    std::optional<keeper::test::ToyDaemon> toy;
    std::jthread stuck;
    if (how == "stuck") {
      toy.emplace(session.fuse, keeper::test::ToyDaemon::Options{.blob_size = 1, .flushes = false});
      stuck = std::jthread([&] { open_file(session.mountpoint + "/blob", O_RDONLY).reset(); });
      while (toy->waiting_flushes() == 0) std::this_thread::yield();
    }
    write_file_durably(arguments[2], std::to_string(::getpid()));

    pollfd ends[2] = {{.fd = signals.value(), .events = POLLIN, .revents = 0},
                      {.fd = client.descriptor(), .events = POLLIN, .revents = 0}};
    ::poll(ends, 2, -1);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "supervised_daemon: %s\n", error.what());
    return 1;
  }
}
