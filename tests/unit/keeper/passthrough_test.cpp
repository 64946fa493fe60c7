// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/unix_address.hpp"
#include "error_of.hpp"
#include "keeper/keeper_client.hpp"
#include "keeper/protocol.hpp"
#include "running_keeper.hpp"
#include "toy_daemon.hpp"

#include <catch2/catch_test_macros.hpp>

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <unistd.h>
#include <memory>
#include <optional>
#include <vector>

namespace weightfs::keeper::test {
namespace {

constexpr long kOverlayMagic = 0x794c7630;

/// Registers a file; skips where the kernel or the filesystem of temporary files cannot.
std::int32_t open_or_skip(KeeperClient& client, const Fd& file) {
  try {
    return client.open_backing(file);
  } catch (const Error& error) {
    if (error.code() != Errc::kUnsupported) throw;
    SKIP(error.what());
  }
  return 0;
}

TEST_CASE("a registered file is read through the mount, and outlives the daemon that asked") {
  require_fuse();
  const Workplace place;
  const std::string content(100'000, 'w');
  write_file_durably(place / "file", content);
  RunningKeeper keeper(place.options());
  std::int32_t id = 0;
  {
    KeeperClient client = KeeperClient::connect(place.socket());
    const Session session = client.hello();
    const ToyDaemon daemon(session.fuse, {});
    id = open_or_skip(client, open_file(place / "file", O_RDONLY));
  }
  REQUIRE(id > 0);
  KeeperClient client = KeeperClient::connect(place.socket());
  const Session session = client.hello();
  CHECK(client.open_backings() == std::vector<std::int32_t>{id});
  {
    const ToyDaemon daemon(session.fuse, {.backing_id = id, .blob_size = content.size()},
                           ToyDaemon::Session::kResumed);
    CHECK(read_file(place.mountpoint() / "blob", 1 << 20) == content);
  }
  client.close_backing(id);
  CHECK(client.open_backings().empty());
  CHECK(error_of([&] { client.close_backing(id); }) == Errc::kNotFound);
}

TEST_CASE("the list of open backing files is complete over many answers") {
  require_fuse();
  const Workplace place;
  write_file_durably(place / "file", "content");
  RunningKeeper keeper(place.options());
  KeeperClient client = KeeperClient::connect(place.socket());
  const Session session = client.hello();
  const ToyDaemon daemon(session.fuse, {});
  const Fd file = open_file(place / "file", O_RDONLY);
  std::vector<std::int32_t> ids{open_or_skip(client, file)};
  while (ids.size() < 3000) ids.push_back(client.open_backing(file));
  std::sort(ids.begin(), ids.end());
  CHECK(client.open_backings() == ids);
}

TEST_CASE("what the daemon could not read itself is not registered for it") {
  require_fuse();
  const Workplace place;
  write_file_durably(place / "file", "content");
  RunningKeeper keeper(place.options());
  KeeperClient client = KeeperClient::connect(place.socket());
  const Session session = client.hello();
  const ToyDaemon daemon(session.fuse, {});
  for (const int flags : {O_WRONLY, O_RDWR, O_PATH}) {
    const Fd file = open_file(place / "file", flags);
    CHECK(error_of([&] { return client.open_backing(file); }) == Errc::kInvalid);
  }
  const Fd directory = open_file(place.mountpoint().parent_path(), O_RDONLY);
  CHECK(error_of([&] { return client.open_backing(directory); }) == Errc::kInvalid);
  const Fd device = open_file("/dev/null", O_RDONLY);
  CHECK(error_of([&] { return client.open_backing(device); }) == Errc::kInvalid);
  CHECK(client.open_backings().empty());
}

TEST_CASE("a keeper does not hang on a descriptor whose close waits for the daemon") {
  require_fuse();
  const Workplace place;
  write_file_durably(place / "file", "content");
  RunningKeeper keeper(place.options());
  std::optional<KeeperClient> client = KeeperClient::connect(place.socket());
  const Session session = client->hello();
  ToyDaemon daemon(session.fuse, {.blob_size = 100, .flushes = false});
  const Fd trap = open_file(place.mountpoint() / "blob", O_RDONLY);
  const Fd file = open_file(place / "file", O_RDONLY);
  // Before the test's own descriptor is closed, whatever fails.
  const std::shared_ptr<void> answered(nullptr, [&](void*) { daemon.answer_flushes(); });
  // Refused (it lies on a stacked mount), and a child is stuck with it. The keeper hangs up.
  CHECK(error_of([&] { return client->open_backing(trap); }) == Errc::kUnavailable);

  client.emplace(KeeperClient::connect(place.socket()));
  CHECK(client->hello().mountpoint == place.mountpoint());
  CHECK(error_of([&] { return client->open_backing(trap); }) == Errc::kBusy);
  CHECK(client->open_backings().empty());

  daemon.answer_flushes();
  CHECK(eventually(
      [&] { return error_of([&] { return client->open_backing(trap); }) != Errc::kBusy; }));
  const std::int32_t backing = open_or_skip(*client, file);
  CHECK(backing > 0);
}

TEST_CASE("descriptors that no request has room for close the connection, not the keeper") {
  require_fuse();
  const Workplace place;
  write_file_durably(place / "file", "content");
  RunningKeeper keeper(place.options());
  const Fd file = open_file(place / "file", O_RDONLY);
  const auto answers = [&](Operation operation, const std::vector<int>& given) {
    const Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const UnixAddress address(place.socket());
    REQUIRE(::connect(socket.value(), address.get(), address.size()) == 0);
    const auto exchange = [&](const Request& request, std::span<const int> descriptors) {
      Response response;
      std::vector<Fd> taken;
      REQUIRE(send_message(socket.value(), std::as_bytes(std::span(&request, 1)), descriptors));
      return receive_message(socket.value(), std::as_writable_bytes(std::span(&response, 1)),
                             taken) == Received::kMessage;
    };
    REQUIRE(exchange({.operation = Operation::kHello}, {}));
    return exchange({.operation = operation}, given);
  };
  CHECK(answers(Operation::kOpenBacking, {file.value()}));
  CHECK_FALSE(answers(Operation::kOpenBacking, {}));
  CHECK_FALSE(answers(Operation::kOpenBacking, {file.value(), file.value()}));
  CHECK_FALSE(answers(Operation::kListBackings, {file.value()}));
  CHECK(answers(Operation::kListBackings, {}));
}

TEST_CASE("a mount that did not agree on passthrough says that it is unsupported") {
  require_fuse();
  const Workplace place;
  write_file_durably(place / "file", "content");
  RunningKeeper keeper(place.options());
  KeeperClient client = KeeperClient::connect(place.socket());
  const Session session = client.hello();
  const ToyDaemon daemon(session.fuse, {.passthrough = false});
  const Fd file = open_file(place / "file", O_RDONLY);
  CHECK(error_of([&] { return client.open_backing(file); }) == Errc::kUnsupported);
}

TEST_CASE("a file on overlayfs says that its filesystem is the reason") {
  require_fuse();
  const Workplace place;
  const Workplace layers;  // its mount point is detached with it
  for (const char* name : {"lower", "upper", "work"}) {
    std::filesystem::create_directory(layers / name);
  }
  write_file_durably(layers / "lower/file", "content");
  const std::string options = "lowerdir=" + (layers / "lower").string() +
                              ",upperdir=" + (layers / "upper").string() +
                              ",workdir=" + (layers / "work").string();
  if (::mount("overlay", layers.mountpoint().c_str(), "overlay", 0, options.c_str()) != 0) {
    SKIP("overlayfs cannot be mounted here");
  }
  RunningKeeper keeper(place.options());
  KeeperClient client = KeeperClient::connect(place.socket());
  const Session session = client.hello();
  const ToyDaemon daemon(session.fuse, {});
  struct statfs filesystem{};
  REQUIRE(::statfs(place.mountpoint().parent_path().c_str(), &filesystem) == 0);
  if (filesystem.f_type != kOverlayMagic) {
    write_file_durably(place / "plain", "content");
    open_or_skip(client, open_file(place / "plain", O_RDONLY));
  }
  const Fd file = open_file(layers.mountpoint() / "file", O_RDONLY);
  try {
    static_cast<void>(client.open_backing(file));
    FAIL("it was registered");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kUnsupported);
    CHECK(std::string(error.what()).find("overlayfs") != std::string::npos);
  }
}

}  // namespace
}  // namespace weightfs::keeper::test
