// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "keeper/keeper.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "error_of.hpp"
#include "keeper/keeper_client.hpp"
#include "keeper/session_memory.hpp"
#include "running_keeper.hpp"
#include "toy_daemon.hpp"

#include <catch2/catch_test_macros.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

namespace weightfs::keeper::test {
namespace {

std::optional<Errc> start_error(KeeperOptions options) {
  return error_of([&] { Keeper keeper(std::move(options), Log::silent()); });
}

/// A mount whose keeper and daemon are dead.
void leave_dead_mount(const std::filesystem::path& mountpoint) {
  const Fd fuse = open_file("/dev/fuse", O_RDWR);
  const std::string options =
      "fd=" + std::to_string(fuse.value()) + ",rootmode=40000,user_id=0,group_id=0,allow_other";
  REQUIRE(::mount("dead", mountpoint.c_str(), "fuse.weightfs", MS_RDONLY, options.c_str()) == 0);
}

TEST_CASE("a daemon that says hello gets the session and serves the mount") {
  require_fuse();
  const Workplace place;
  RunningKeeper keeper(place.options());
  KeeperClient client = KeeperClient::connect(place.socket());
  const Session session = client.hello();
  CHECK(session.mountpoint == place.mountpoint());
  CHECK(session.keeper_pid == ::getpid());
  CHECK(SessionMemory(session.memory).init_state() == SessionMemory::InitState::kNone);

  const ToyDaemon daemon(session.fuse, {});
  struct stat status{};
  REQUIRE(::stat(place.mountpoint().c_str(), &status) == 0);
  CHECK(S_ISDIR(status.st_mode));
  struct statvfs space{};
  REQUIRE(::statvfs(place.mountpoint().c_str(), &space) == 0);
  CHECK(space.f_blocks == 123);
  CHECK((space.f_flag & (ST_RDONLY | ST_NOSUID | ST_NODEV)) == (ST_RDONLY | ST_NOSUID | ST_NODEV));
  CHECK(::mkdir((place.mountpoint() / "new").c_str(), 0755) != 0);
  CHECK(errno == EROFS);

  keeper.stop();
  CHECK(keeper.result() == 0);
  CHECK(mounts_on(place.mountpoint()) == 0);
}

TEST_CASE("the read-ahead of the mount is raised without asking the filesystem") {
  require_fuse();
  const Workplace place;
  RunningKeeper keeper(place.options());
  KeeperClient client = KeeperClient::connect(place.socket());
  const Session session = client.hello();
  const ToyDaemon daemon(session.fuse, {});
  client.set_read_ahead(2048);
  CHECK(error_of([&] { client.set_read_ahead(1 << 30); }) == Errc::kInvalid);
  struct stat status{};
  REQUIRE(::stat(place.mountpoint().c_str(), &status) == 0);
  const std::filesystem::path control =
      fmt::format("/sys/class/bdi/{}:{}/read_ahead_kb", major(status.st_dev), minor(status.st_dev));
  if (::access(control.c_str(), W_OK) != 0) SKIP("sysfs cannot be written here");
  CHECK(read_file(control, 64) == "2048\n");
}

TEST_CASE("what is asked before there is a daemon waits for it") {
  require_fuse();
  const Workplace place;
  RunningKeeper keeper(place.options());
  auto asked = std::async(std::launch::async, [&] {
    struct stat status{};
    return ::stat(place.mountpoint().c_str(), &status);
  });
  KeeperClient client = KeeperClient::connect(place.socket());
  const Session session = client.hello();
  CHECK(asked.wait_for(std::chrono::milliseconds(0)) == std::future_status::timeout);
  const ToyDaemon daemon(session.fuse, {});
  CHECK(asked.get() == 0);
}

TEST_CASE("an unmount by hand ends the keeper with 0") {
  require_fuse();
  const Workplace place;
  RunningKeeper keeper(place.options());
  REQUIRE(::umount2(place.mountpoint().c_str(), 0) == 0);
  CHECK(keeper.result() == 0);
}

TEST_CASE("a connection that is aborted ends the keeper as a failure, unmounted") {
  require_fuse();
  const Workplace place;
  RunningKeeper keeper(place.options());
  {
    const Fd busy = open_file(place.mountpoint(), O_PATH);
    REQUIRE(::umount2(place.mountpoint().c_str(), MNT_FORCE) != 0);  // aborts, then finds it busy
    CHECK(keeper.result() == kKeeperGaveUp);
  }
  CHECK(mounts_on(place.mountpoint()) == 0);
}

TEST_CASE("mounts left by dead keepers are replaced, however many lie on each other") {
  require_fuse();
  const Workplace place;
  for (int dead = 0; dead < 3; ++dead) leave_dead_mount(place.mountpoint());
  REQUIRE(mounts_on(place.mountpoint()) == 3);
  {
    RunningKeeper keeper(place.options());
    CHECK(mounts_on(place.mountpoint()) == 1);
    KeeperClient client = KeeperClient::connect(place.socket());
    const Session session = client.hello();
    const ToyDaemon daemon(session.fuse, {});
    struct stat status{};
    CHECK(::stat(place.mountpoint().c_str(), &status) == 0);
  }
  CHECK(mounts_on(place.mountpoint()) == 0);
}

TEST_CASE("a dead mount is seen for what it is, though the kernel remembers its attributes") {
  require_fuse();
  const Workplace place;
  {
    const Fd fuse = open_file("/dev/fuse", O_RDWR);
    const std::string options =
        "fd=" + std::to_string(fuse.value()) + ",rootmode=40000,user_id=0,group_id=0,allow_other";
    REQUIRE(::mount("dead", place.mountpoint().c_str(), "fuse.weightfs", MS_RDONLY,
                    options.c_str()) == 0);
    const ToyDaemon daemon(fuse, {.attributes_valid = 3600});
    struct stat status{};
    REQUIRE(::stat(place.mountpoint().c_str(), &status) == 0);
  }
  struct stat status{};
  CHECK(::stat(place.mountpoint().c_str(), &status) == 0);  // a plain stat is fooled
  const RunningKeeper keeper(place.options());
  CHECK(mounts_on(place.mountpoint()) == 1);
}

TEST_CASE("a live weightfs on the mount point is left alone") {
  require_fuse();
  const Workplace place;
  RunningKeeper keeper(place.options());
  const KeeperOptions second{.mountpoint = place.mountpoint(), .socket = place / "second.sock"};
  SECTION("with a daemon") {
    KeeperClient client = KeeperClient::connect(place.socket());
    const Session session = client.hello();
    const ToyDaemon daemon(session.fuse, {});
    CHECK(start_error(second) == Errc::kBusy);
  }
  SECTION("whose daemon does not answer") {
    CHECK(start_error(second) == Errc::kBusy);
  }
  CHECK(mounts_on(place.mountpoint()) == 1);
  CHECK_FALSE(std::filesystem::exists(place / "second.sock"));
}

TEST_CASE("a mount point that cannot be one is a clear error") {
  require_fuse();
  const Workplace place;
  KeeperOptions options = place.options();
  options.mountpoint = place / "missing";
  CHECK(start_error(options) == Errc::kNotFound);
  write_file_durably(place / "file", "");
  options.mountpoint = place / "file";
  CHECK(start_error(options) == Errc::kInvalid);
  CHECK(start_error({.mountpoint = place.mountpoint()}) == Errc::kInvalid);
}

TEST_CASE("a mount point is found through links and odd names") {
  require_fuse();
  const Workplace place;
  const std::filesystem::path odd = place / "a b\\c\td";
  std::filesystem::create_directory(odd);
  std::filesystem::create_symlink(odd, place / "link");
  KeeperOptions options = place.options();
  options.mountpoint = place / "link";
  {
    RunningKeeper keeper(options);
    CHECK(mounts_on(odd) == 1);
    CHECK(start_error({.mountpoint = odd, .socket = place / "second.sock"}) == Errc::kBusy);
  }
  CHECK(mounts_on(odd) == 0);
}

TEST_CASE("one daemon at a time: the second is told so until the first has left") {
  require_fuse();
  const Workplace place;
  RunningKeeper keeper(place.options());
  std::optional<KeeperClient> first = KeeperClient::connect(place.socket());
  KeeperClient second = KeeperClient::connect(place.socket());
  CHECK(error_of([&] { second.set_read_ahead(128); }) == Errc::kPermission);
  const Session session = first->hello();
  CHECK(error_of([&] { return second.hello(); }) == Errc::kBusy);
  CHECK(error_of([&] { return second.open_backings(); }) == Errc::kPermission);
  first.reset();
  CHECK(second.hello().mountpoint == session.mountpoint);
}

TEST_CASE("a successor gets the same connection and the same memory") {
  require_fuse();
  const Workplace place;
  RunningKeeper keeper(place.options());
  {
    KeeperClient client = KeeperClient::connect(place.socket());
    const Session session = client.hello();
    const ToyDaemon daemon(session.fuse, {});
    SessionMemory(session.memory).append("remember");
    struct stat status{};
    REQUIRE(::stat(place.mountpoint().c_str(), &status) == 0);
  }
  KeeperClient client = KeeperClient::connect(place.socket());
  const Session session = client.hello();
  const ToyDaemon daemon(session.fuse, {}, ToyDaemon::Session::kResumed);
  CHECK(SessionMemory(session.memory).records() == std::vector<std::string>{"remember"});
  struct statvfs space{};
  CHECK(::statvfs(place.mountpoint().c_str(), &space) == 0);
}

TEST_CASE("an unmount that the daemon asks for refuses a busy mount, unless it is lazy") {
  require_fuse();
  const Workplace place;
  RunningKeeper keeper(place.options());
  KeeperClient client = KeeperClient::connect(place.socket());
  const Session session = client.hello();
  const ToyDaemon daemon(session.fuse, {});
  Fd user = open_file(place.mountpoint(), O_RDONLY | O_DIRECTORY);
  CHECK(error_of([&] { client.unmount(KeeperClient::Detach::kNo); }) == Errc::kBusy);
  CHECK(mounts_on(place.mountpoint()) == 1);
  client.unmount(KeeperClient::Detach::kLazy);
  CHECK(mounts_on(place.mountpoint()) == 0);
  // It is served until its last user has gone.
  struct stat status{};
  CHECK(::fstat(user.value(), &status) == 0);
  CHECK(client.open_backings().empty());
  user.reset();
  CHECK(keeper.result() == 0);
}

TEST_CASE("after a lazy unmount the keeper ends with its daemon") {
  require_fuse();
  const Workplace place;
  RunningKeeper keeper(place.options());
  std::optional<KeeperClient> client = KeeperClient::connect(place.socket());
  const Session session = client->hello();
  const ToyDaemon daemon(session.fuse, {});
  const Fd user = open_file(place.mountpoint(), O_RDONLY | O_DIRECTORY);
  client->unmount(KeeperClient::Detach::kLazy);
  client.reset();
  CHECK(keeper.result() == 0);
}

TEST_CASE("a keeper that is stopped detaches a mount that is in use") {
  require_fuse();
  const Workplace place;
  RunningKeeper keeper(place.options());
  const Fd user = open_file(place.mountpoint(), O_PATH);
  keeper.stop();
  CHECK(keeper.result() == 0);
  CHECK(mounts_on(place.mountpoint()) == 0);
}

TEST_CASE("a keeper leaves alone what was mounted over it") {
  require_fuse();
  const Workplace place;
  RunningKeeper keeper(place.options());
  REQUIRE(::mount("over", place.mountpoint().c_str(), "tmpfs", 0, "size=64k") == 0);
  keeper.stop();
  CHECK(keeper.result() == 0);
  struct statvfs space{};
  REQUIRE(::statvfs(place.mountpoint().c_str(), &space) == 0);
  CHECK(space.f_blocks == 16);
}

TEST_CASE("the daemon notices that the keeper is gone") {
  require_fuse();
  const Workplace place;
  std::optional<RunningKeeper> keeper(std::in_place, place.options());
  KeeperClient client = KeeperClient::connect(place.socket());
  const Session session = client.hello();
  keeper.reset();
  pollfd gone{.fd = client.descriptor(), .events = POLLIN, .revents = 0};
  CHECK(::poll(&gone, 1, 10'000) == 1);
  CHECK(error_of([&] { client.set_read_ahead(128); }) == Errc::kUnavailable);
  CHECK(error_of([&] { return KeeperClient::connect(place.socket()); }) == Errc::kUnavailable);
  CHECK_FALSE(std::filesystem::exists(place.socket()));
}

TEST_CASE("a socket file without a keeper is replaced, one with a keeper is not") {
  require_fuse();
  const Workplace place;
  const Workplace elsewhere;
  KeeperOptions other = elsewhere.options();
  other.socket = place.socket();
  REQUIRE(::mknod(place.socket().c_str(), S_IFSOCK | 0600, 0) == 0);
  RunningKeeper keeper(place.options());
  CHECK(start_error(other) == Errc::kBusy);
  CHECK(KeeperClient::connect(place.socket()).hello().mountpoint == place.mountpoint());
  write_file_durably(elsewhere / "file", "precious");
  other.socket = elsewhere / "file";
  CHECK(start_error(other) == Errc::kBusy);
  CHECK(read_file(elsewhere / "file", 64) == "precious");
  other.socket = elsewhere / std::string(120, 'x');
  CHECK(start_error(other) == Errc::kInvalid);
}

TEST_CASE("only root and the daemon's user are let in") {
  require_fuse();
  const Workplace place;
  KeeperOptions options = place.options();
  options.daemon_uid = 65534;
  options.daemon_gid = 65534;
  RunningKeeper keeper(options);
  const auto hello_as = [&](uid_t uid) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (::setresuid(uid, uid, uid) != 0) ::_exit(99);
      ::_exit(error_of([&] { static_cast<void>(KeeperClient::connect(place.socket()).hello()); }) ==
                      std::nullopt
                  ? 0
                  : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  };
  CHECK(hello_as(0) == 0);
  CHECK(hello_as(65534) == 0);
  CHECK(hello_as(12345) == 1);
  // The kernel's word counts, not only the file's mode.
  std::filesystem::permissions(place.socket(), std::filesystem::perms::all);
  CHECK(hello_as(12345) == 1);
  CHECK(hello_as(65534) == 0);
}

}  // namespace
}  // namespace weightfs::keeper::test
