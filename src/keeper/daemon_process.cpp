// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "keeper/daemon_process.hpp"

#include "base/error.hpp"
#include "base/process_state.hpp"
#include "keeper/exit_status.hpp"
#include "keeper/pidfd.hpp"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <utility>

namespace weightfs::keeper {

namespace {

// From here to become_daemon(): between fork and exec, where only async-signal-safe calls are
// allowed.

[[noreturn]] void fail(const char* what) {
  const char* parts[] = {"weightfs: the daemon does not start: ", what, ": ",
                         strerrordesc_np(errno), "\n"};
  for (const char* part : parts) {
    if (part && ::write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  }
  ::_exit(kDaemonFatal);
}

void reset_signals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void keep_only(int socket, const std::vector<Inherited>& inherited) {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0 || ::dup2(null, STDIN_FILENO) < 0) fail("open /dev/null");
  if (::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0) fail("close the keeper's descriptors");
  if (::fcntl(socket, F_SETFD, 0) != 0) fail("keep the socket");
  for (const Inherited& one : inherited) {
    if (::fcntl(one.descriptor, F_SETFD, 0) != 0) fail("keep a descriptor");
  }
}

void drop_privileges(uid_t uid, gid_t gid) {
  // Where the keeper may not (no CAP_SETPCAP), no_new_privs keeps the bounding set from mattering.
  for (int capability = 0; ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0;) ++capability;
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  if (::setgroups(0, nullptr) != 0) fail("setgroups");
  if (::setresgid(gid, gid, gid) != 0) fail("setresgid");
  if (::setresuid(uid, uid, uid) != 0) fail("setresuid");
  // Needed where uid is 0: setresuid then takes nothing away.
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct nothing[2]{};
  if (::syscall(SYS_capset, &header, nothing) != 0) fail("capset");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("no_new_privs");
}

/// Best effort; as root, since the keeper's score is lower than what others may choose.
void set_oom_score(const std::string& score) {
  if (score.empty()) return;
  const int file = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file >= 0 && ::write(file, score.data(), score.size()) < 0) return;
}

[[noreturn]] void become_daemon(const DaemonOptions& options, int socket, char* const* arguments) {
  ::setsid();  // a terminal's Ctrl-C is for the keeper, which tells the daemon
  reset_signals();
  set_oom_score(options.oom_score_adj);
  keep_only(socket, options.inherited);
  drop_privileges(options.uid, options.gid);
  ::execvp(arguments[0], arguments);
  fail(arguments[0]);
}

}  // namespace

DaemonProcess::DaemonProcess(const DaemonOptions& options, const Fd& socket) {
  std::vector<Inherited> numbers = options.inherited;
  numbers.push_back({kSocketPlaceholder, socket.value()});
  std::vector<std::string> command = options.command;
  std::vector<char*> arguments;
  for (std::string& argument : command) {
    for (const Inherited& one : numbers) {
      const std::size_t at = argument.find(one.placeholder);
      if (at == std::string::npos) continue;
      argument.replace(at, one.placeholder.size(), std::to_string(one.descriptor));
    }
    arguments.push_back(argument.data());
  }
  arguments.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) throw_errno(errno, "fork the daemon");
  if (pid_ == 0) become_daemon(options, socket.value(), arguments.data());
  process_ = open_pidfd(pid_);
  if (!process_) {
    const int error = errno;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    throw_errno(error, "pidfd_open");
  }
}

DaemonProcess::~DaemonProcess() {
  if (pid_ < 0) return;
  signal(SIGKILL);
  pollfd ended{.fd = process_.value(), .events = POLLIN, .revents = 0};
  if (::poll(&ended, 1, static_cast<int>(kPatience.count())) > 0) static_cast<void>(wait());
}

void DaemonProcess::signal(int number) const noexcept {
  if (pid_ > 0) ::kill(pid_, number);
}

bool DaemonProcess::main_thread_ended() const {
  const std::optional<ProcessState> state = process_state(pid_);
  return state && state->main_thread_ended;
}

int DaemonProcess::wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

}  // namespace weightfs::keeper
