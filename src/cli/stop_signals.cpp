// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/stop_signals.hpp"

#include "base/error.hpp"

#include <sys/signalfd.h>
#include <cerrno>
#include <csignal>

namespace weightfs::cli {

Fd block_stop_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t blocked;
  ::sigemptyset(&blocked);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&blocked, signal);
  if (::sigprocmask(SIG_BLOCK, &blocked, nullptr) != 0) throw_errno(errno, "block signals");
  ::sigdelset(&blocked, SIGHUP);
  Fd descriptor(::signalfd(-1, &blocked, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor) throw_errno(errno, "signalfd");
  return descriptor;
}

Fd reload_signal() {
  sigset_t hangup;
  ::sigemptyset(&hangup);
  ::sigaddset(&hangup, SIGHUP);
  Fd descriptor(::signalfd(-1, &hangup, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor) throw_errno(errno, "signalfd");
  return descriptor;
}

bool take_reload_signal(int descriptor) {
  signalfd_siginfo signal{};
  bool taken = false;
  while (::read(descriptor, &signal, sizeof signal) == sizeof signal) taken = true;
  return taken;
}

}  // namespace weightfs::cli
