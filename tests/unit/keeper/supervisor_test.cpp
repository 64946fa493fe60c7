// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "keeper/supervisor.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/process_state.hpp"
#include "keeper/exit_status.hpp"
#include "running_keeper.hpp"

#include <catch2/catch_test_macros.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <fstream>
#include <map>

namespace weightfs::keeper::test {
namespace {

std::vector<std::string> shell(std::string script) {
  return {"sh", "-c", std::move(script)};
}

/// The pid in a file that a daemon writes; 0 while there is none.
pid_t pid_in(const std::filesystem::path& path) {
  pid_t pid = 0;
  std::ifstream(path) >> pid;
  return pid;
}

/// Waits for a pid in the file that is not `old`.
pid_t next_pid(const std::filesystem::path& path, pid_t old) {
  pid_t pid = 0;
  const bool came = eventually([&] { return (pid = pid_in(path)) != 0 && pid != old; });
  return came ? pid : 0;
}

/// Gone, or a zombie that somebody else has to reap.
bool has_ended(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string ignored;
  std::string state = "gone";
  stat >> ignored >> ignored >> state;
  return state == "gone" || state == "Z" || state == "X";
}

std::filesystem::path supervised_daemon() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "keeper" /
         "supervised_daemon";
}

TEST_CASE("a daemon starts without rights and with nothing but its socket") {
  if (::geteuid() != 0) SKIP("dropping rights needs root");
  const TemporaryDirectory place;
  const Fd kept = open_file("/dev/null", O_RDONLY);
  const Fd leak(::fcntl(kept.value(), F_DUPFD, 100));  // without close-on-exec
  sigset_t blocked;
  sigset_t before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  DaemonProcess process(
      {.command =
           shell("exec > '" + (place / "status").string() + "'; cat /proc/self/status; exec > '" +
                 (place / "descriptors").string() + "'; echo {keeper-fd}; ls /proc/$$/fd"),
       .uid = 65534,
       .gid = 65533},
      kept);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  REQUIRE(process.wait() == 0);

  std::map<std::string, std::string> status;
  std::ifstream lines(place / "status");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(":\t");
    if (colon != std::string::npos) status[line.substr(0, colon)] = line.substr(colon + 2);
  }
  CHECK(status["Uid"] == "65534\t65534\t65534\t65534");
  CHECK(status["Gid"] == "65533\t65533\t65533\t65533");
  CHECK(std::count_if(status["Groups"].begin(), status["Groups"].end(), ::isdigit) == 0);
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "SigBlk"}) {
    INFO(set);
    CHECK(status[set] == "0000000000000000");
  }
  CHECK(status["NoNewPrivs"] == "1");

  const std::string socket = std::to_string(kept.value());
  CHECK(read_file(place / "descriptors", 100) == socket + "\n0\n1\n2\n" + socket + "\n");
}

TEST_CASE("a daemon that runs as root has no capabilities either") {
  if (::geteuid() != 0) SKIP("dropping rights needs root");
  const TemporaryDirectory place;
  const Fd socket = open_file("/dev/null", O_RDONLY);
  DaemonProcess process(
      {.command = shell("grep CapEff /proc/$$/status > '" + (place / "caps").string() + "'")},
      socket);
  REQUIRE(process.wait() == 0);
  CHECK(read_file(place / "caps", 100) == "CapEff:\t0000000000000000\n");
}

TEST_CASE("a daemon that cannot be executed is not tried again") {
  require_fuse();
  const Workplace place;
  RunningKeeper keeper(place.supervising({"/nonexistent/daemon"}));
  CHECK(keeper.result() == kDaemonFatal);
  CHECK(mounts_on(place.mountpoint()) == 0);
}

TEST_CASE("a daemon that calls its end final ends the keeper with its status, unmounted") {
  require_fuse();
  const Workplace place;
  for (const int status : {0, kDaemonFatal}) {
    RunningKeeper keeper(place.supervising(shell("exit " + std::to_string(status))));
    CHECK(keeper.result() == status);
    CHECK(mounts_on(place.mountpoint()) == 0);
  }
}

TEST_CASE("a daemon that never comes up is given up") {
  require_fuse();
  const Workplace place;
  RunningKeeper keeper(
      place.supervising(shell("echo >> '" + (place / "lives").string() + "'; exit 3")));
  CHECK(keeper.result() == kKeeperGaveUp);
  CHECK(read_file(place / "lives", 100).size() == RestartPolicy::kFirstLives);
  CHECK(mounts_on(place.mountpoint()) == 0);
}

TEST_CASE("hello is not enough to have come up") {
  require_fuse();
  const Workplace place;
  RunningKeeper keeper(place.supervising(
      {supervised_daemon(), std::string(kSocketPlaceholder), place / "pid", "fails"}));
  CHECK(keeper.result() == kKeeperGaveUp);
  CHECK(mounts_on(place.mountpoint()) == 0);
}

TEST_CASE("a daemon that does not come up in time is killed and replaced") {
  require_fuse();
  const Workplace place;
  const std::filesystem::path pid_file = place / "pid";
  KeeperOptions options =
      place.supervising(shell("echo $$ > '" + pid_file.string() + "'; exec sleep 60"));
  options.start_patience = std::chrono::milliseconds(300);
  RunningKeeper keeper(std::move(options));
  const pid_t first = next_pid(pid_file, 0);
  REQUIRE(first != 0);
  REQUIRE(next_pid(pid_file, first) != 0);
  CHECK(has_ended(first));
}

TEST_CASE("what is due for a daemon, from its start to the end without it") {
  if (::geteuid() != 0) SKIP("dropping rights needs root");
  using std::chrono::seconds;
  int aborted = 0;
  Supervisor supervisor({.daemon = {.command = shell("trap '' TERM; exec sleep 60")},
                         .start_patience = seconds(100),
                         .stop_grace = seconds(10),
                         .kill_patience = seconds(5),
                         .abort_connection = [&] { ++aborted; }},
                        Log::silent());
  const Clock::TimePoint start = Clock::TimePoint{} + seconds(1000);
  REQUIRE(supervisor.advance(start).has_value());
  CHECK(supervisor.due() == start + seconds(100));
  SECTION("it comes up, and has all the time") {
    supervisor.note_up(start);
    CHECK(supervisor.due() == std::nullopt);
    supervisor.expect_end(start + seconds(500));
    CHECK(supervisor.due() == start + seconds(510));
  }
  SECTION("it lets go of the keeper before it comes up") {
    supervisor.expect_end(start);
    CHECK(supervisor.due() == start + seconds(10));
  }
  SECTION("it does not end, though it is killed") {
    supervisor.stop(start);
    supervisor.note_up(start);  // too late
    CHECK(supervisor.due() == start + seconds(10));
    CHECK_FALSE(supervisor.advance(start + seconds(10)));
    CHECK(supervisor.due() == start + seconds(15));
    CHECK(aborted == 0);
    CHECK_FALSE(supervisor.advance(start + seconds(15)));
    CHECK(aborted == 1);
    CHECK(supervisor.due() == start + seconds(20));
    CHECK(supervisor.running());
    CHECK_FALSE(supervisor.advance(start + seconds(20)));
    CHECK_FALSE(supervisor.running());
    CHECK(supervisor.due() == std::nullopt);
  }
}

TEST_CASE("a daemon that served is replaced at once, however often it dies young") {
  if (::geteuid() != 0) SKIP("dropping rights needs root");
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  Supervisor supervisor({.daemon = {.command = shell("kill -9 $$")},
                         .start_patience = seconds(100),
                         .stop_grace = seconds(10),
                         .kill_patience = seconds(5),
                         .abort_connection = [] {}},
                        Log::silent());
  Clock::TimePoint now = Clock::TimePoint{} + seconds(1000);
  for (int life = 0; life < 10; ++life) {
    CAPTURE(life);
    REQUIRE(supervisor.advance(now).has_value());
    now += milliseconds(300);
    supervisor.note_up(now);
    now += milliseconds(1000);
    pollfd ended{.fd = supervisor.descriptor(), .events = POLLIN, .revents = 0};
    REQUIRE(::poll(&ended, 1, 10'000) == 1);
    REQUIRE(supervisor.reap(now) == std::nullopt);
    CHECK(supervisor.due() == now);
  }
}

TEST_CASE("a mount that was served is not given up for what the next daemon says") {
  require_fuse();
  const Workplace place;
  const std::filesystem::path pid_file = place / "pid";
  const std::string lives = (place / "lives").string();
  // Every second life fails for good, as it says.
  RunningKeeper keeper(place.supervising(shell(
      "echo >> '" + lives + "'; [ $(($(wc -l < '" + lives + "') % 2)) = 1 ] || exit 78; exec '" +
      supervised_daemon().string() + "' {keeper-fd} '" + pid_file.string() + "'")));
  const pid_t first = next_pid(pid_file, 0);
  REQUIRE(first != 0);
  REQUIRE(::kill(first, SIGKILL) == 0);
  CHECK(next_pid(pid_file, first) != 0);
  CHECK(mounts_on(place.mountpoint()) == 1);
  CHECK(read_file(lives, 100).size() == 3);
}

TEST_CASE("a killed daemon that waits for itself does not keep the keeper from ending") {
  require_fuse();
  const Workplace place;
  const std::filesystem::path pid_file = place / "pid";
  KeeperOptions options =
      place.supervising({supervised_daemon(), std::string(kSocketPlaceholder), pid_file, "stuck"});
  options.stop_grace = std::chrono::milliseconds(100);
  options.kill_patience = std::chrono::milliseconds(300);
  RunningKeeper keeper(std::move(options));
  const pid_t pid = next_pid(pid_file, 0);
  REQUIRE(pid != 0);
  keeper.stop();
  CHECK(keeper.result() == 0);
  CHECK(eventually([&] { return has_ended(pid); }));
  CHECK(mounts_on(place.mountpoint()) == 0);
}

TEST_CASE("a killed daemon that hangs in the kernel is replaced, and freed at the end") {
  require_fuse();
  const Workplace place;
  const std::filesystem::path pid_file = place / "pid";
  const std::string once = (place / "once").string();
  KeeperOptions options = place.supervising(
      shell("how=stuck; [ ! -e '" + once + "' ] || how=; touch '" + once + "'; exec '" +
            supervised_daemon().string() + "' {keeper-fd} '" + pid_file.string() + "' $how"));
  options.kill_patience = std::chrono::milliseconds(300);
  RunningKeeper keeper(std::move(options));
  const pid_t stuck = next_pid(pid_file, 0);
  REQUIRE(stuck != 0);
  REQUIRE(::kill(stuck, SIGKILL) == 0);
  CHECK(next_pid(pid_file, stuck) != 0);
  const std::optional<ProcessState> state = process_state(stuck);
  REQUIRE(state.has_value());
  CHECK(state->main_thread_ended);
  keeper.stop();
  CHECK(keeper.result() == 0);
  CHECK(eventually([&] { return ::waitpid(stuck, nullptr, WNOHANG) == stuck; }));
  CHECK(mounts_on(place.mountpoint()) == 0);
}

TEST_CASE("a daemon that is killed is started again, the mount and the memory stay") {
  require_fuse();
  const Workplace place;
  const std::filesystem::path pid_file = place / "pid";
  RunningKeeper keeper(
      place.supervising({supervised_daemon(), std::string(kSocketPlaceholder), pid_file}));
  pid_t pid = 0;
  for (int life = 0; life < 4; ++life) {
    const pid_t next = next_pid(pid_file, pid);
    REQUIRE(next != 0);
    pid = next;
    CHECK(mounts_on(place.mountpoint()) == 1);
    if (life < 3) REQUIRE(::kill(pid, SIGKILL) == 0);
  }
  keeper.stop();
  CHECK(keeper.result() == 0);
  CHECK(has_ended(pid));
  CHECK(mounts_on(place.mountpoint()) == 0);
}

TEST_CASE("a script that is killed is started again, too") {
  require_fuse();
  const Workplace place;
  const std::filesystem::path pid_file = place / "pid";
  KeeperOptions options =
      place.supervising(shell("echo $$ > '" + pid_file.string() + "'; exec sleep 60"));
  options.daemon_uid = 65534;
  options.daemon_gid = 65534;
  RunningKeeper keeper(std::move(options));
  const pid_t first = next_pid(pid_file, 0);
  REQUIRE(first != 0);
  REQUIRE(::kill(first, SIGKILL) == 0);
  CHECK(next_pid(pid_file, first) != 0);
}

TEST_CASE("a daemon that ignores SIGTERM is killed after the grace") {
  require_fuse();
  const Workplace place;
  const std::filesystem::path pid_file = place / "pid";
  KeeperOptions options = place.supervising(
      shell("trap '' TERM; echo $$ > '" + pid_file.string() + "'; exec sleep 60"));
  options.stop_grace = std::chrono::milliseconds(100);
  RunningKeeper keeper(std::move(options));
  const pid_t pid = next_pid(pid_file, 0);
  REQUIRE(pid != 0);
  keeper.stop();
  CHECK(keeper.result() == 0);
  CHECK(has_ended(pid));
}

TEST_CASE("a daemon that closes its socket and lives on is killed and replaced") {
  require_fuse();
  const Workplace place;
  const std::filesystem::path pid_file = place / "pid";
  KeeperOptions options = place.supervising(
      shell("echo $$ > '" + pid_file.string() + "'; exec {keeper-fd}>&-; exec sleep 60"));
  options.stop_grace = std::chrono::milliseconds(100);
  RunningKeeper keeper(std::move(options));
  const pid_t first = next_pid(pid_file, 0);
  REQUIRE(first != 0);
  CHECK(next_pid(pid_file, first) != 0);
}

TEST_CASE("a daemon is replaced though a child of it still holds its socket") {
  require_fuse();
  const Workplace place;
  const std::filesystem::path pid_file = place / "pid";
  const std::filesystem::path child_file = place / "child";
  RunningKeeper keeper(place.supervising(
      shell("'" + supervised_daemon().string() + "' {keeper-fd} '" + child_file.string() +
            "' & echo $$ > '" + pid_file.string() + "'; exec sleep 60")));
  const pid_t child = next_pid(child_file, 0);  // it has said hello
  const pid_t daemon = next_pid(pid_file, 0);
  REQUIRE((child != 0 && daemon != 0));
  REQUIRE(::kill(daemon, SIGKILL) == 0);
  CHECK(next_pid(child_file, child) != 0);
  CHECK(eventually([&] { return has_ended(child); }));
}

TEST_CASE("a daemon ends when its keeper is killed") {
  require_fuse();
  const Workplace place;
  const std::filesystem::path pid_file = place / "pid";
  const pid_t keeper = ::fork();
  if (keeper == 0) {
    Keeper(place.supervising({supervised_daemon(), std::string(kSocketPlaceholder), pid_file}),
           Log::silent())
        .run(-1);
    ::_exit(0);
  }
  const pid_t daemon = next_pid(pid_file, 0);
  REQUIRE(::kill(keeper, SIGKILL) == 0);
  ::waitpid(keeper, nullptr, 0);
  REQUIRE(daemon != 0);
  CHECK(eventually([&] { return has_ended(daemon); }));
  // What it left is dead, and replaced by the next one.
  const RunningKeeper next(place.options());
  CHECK(mounts_on(place.mountpoint()) == 1);
}

TEST_CASE("a daemon ends when its mount is taken away by hand") {
  require_fuse();
  const Workplace place;
  const std::filesystem::path pid_file = place / "pid";
  RunningKeeper keeper(
      place.supervising({supervised_daemon(), std::string(kSocketPlaceholder), pid_file}));
  const pid_t pid = next_pid(pid_file, 0);
  REQUIRE(pid != 0);
  detach_all(place.mountpoint());
  CHECK(keeper.result() == 0);
  CHECK(has_ended(pid));
}

}  // namespace
}  // namespace weightfs::keeper::test
