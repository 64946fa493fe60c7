// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "keeper/protocol.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/unix_address.hpp"
#include "keeper/keeper_client.hpp"
#include "running_keeper.hpp"

#include <catch2/catch_test_macros.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <array>
#include <filesystem>
#include <utility>

namespace weightfs::keeper::test {
namespace {

std::pair<Fd, Fd> socket_pair() {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

std::span<const std::byte> bytes_of(const Request& request) {
  return std::as_bytes(std::span(&request, 1));
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST_CASE("a message arrives with its descriptors, which do not survive exec") {
  const auto [ours, theirs] = socket_pair();
  const Fd null = open_file("/dev/null", O_RDONLY);
  const std::array<int, 2> given{null.value(), null.value()};
  Request got;
  std::vector<Fd> taken;
  const auto room = std::as_writable_bytes(std::span(&got, 1));
  CHECK(receive_message(ours.value(), room, taken) == Received::kNothing);
  REQUIRE(
      send_message(theirs.value(), bytes_of({.operation = Operation::kHello, .value = 7}), given));
  REQUIRE(receive_message(ours.value(), room, taken) == Received::kMessage);
  CHECK(got.operation == Operation::kHello);
  CHECK(got.value == 7);
  REQUIRE(taken.size() == 2);
  CHECK(::fcntl(taken[0].value(), F_GETFD) == FD_CLOEXEC);
}

TEST_CASE("messages of another size or with too many descriptors are refused and leak nothing") {
  const auto [ours, theirs] = socket_pair();
  const std::size_t before = open_descriptors();
  std::array<std::byte, sizeof(Request)> room{};
  std::vector<Fd> taken;
  const std::array<std::byte, 2 * sizeof(Request)> message{};
  for (const std::size_t size : {std::size_t{1}, sizeof(Request) - 1, sizeof(Request) + 1}) {
    REQUIRE(send_message(theirs.value(), std::span(message).first(size)));
    CHECK(receive_message(ours.value(), room, taken) == Received::kClosed);
  }
  // More than kMaxDescriptors, which only a foreign program sends.
  std::array<int, 8> given{};
  given.fill(ours.value());
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof given)> control{};
  iovec part{const_cast<std::byte*>(message.data()), sizeof(Request)};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof given);
  std::copy(given.begin(), given.end(), reinterpret_cast<int*>(CMSG_DATA(rights)));
  REQUIRE(::sendmsg(theirs.value(), &header, 0) == sizeof(Request));
  CHECK(receive_message(ours.value(), room, taken) == Received::kClosed);
  CHECK(taken.empty());
  CHECK(open_descriptors() == before);
}

TEST_CASE("an error keeps its meaning over the wire") {
  for (const Errc code : {Errc::kInvalid, Errc::kNotFound, Errc::kPermission, Errc::kTimedOut,
                          Errc::kNoSpace, Errc::kBusy, Errc::kUnsupported, Errc::kIo}) {
    CHECK(from_errno(to_errno(code)) == code);
  }
  CHECK(from_errno(to_errno(Errc::kInternal)) == Errc::kIo);
}

/// Connects without a KeeperClient.
class RawClient {
 public:
  explicit RawClient(const std::filesystem::path& path)
      : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    const UnixAddress address(path);
    REQUIRE(::connect(socket_.value(), address.get(), address.size()) == 0);
  }
  void send(std::span<const std::byte> message, std::span<const int> descriptors = {}) const {
    REQUIRE(send_message(socket_.value(), message, descriptors));
  }
  [[nodiscard]] bool try_send(std::span<const std::byte> message) const {
    return send_message(socket_.value(), message);
  }
  /// The errno of the answer; -1 where the keeper closed the connection instead.
  [[nodiscard]] int answer() const {
    Response response;
    std::vector<Fd> descriptors;
    return receive_message(socket_.value(), std::as_writable_bytes(std::span(&response, 1)),
                           descriptors) == Received::kMessage
               ? response.error
               : -1;
  }

 private:
  Fd socket_;
};

TEST_CASE("a keeper closes what does not speak its protocol and goes on with the others") {
  require_fuse();
  const Workplace place;
  RunningKeeper keeper(place.options());
  KeeperClient daemon = KeeperClient::connect(place.socket());
  const Session session = daemon.hello();
  const auto answer_to = [&](std::span<const std::byte> message,
                             std::vector<int> descriptors = {}) {
    const RawClient client(place.socket());
    client.send(message, descriptors);
    return client.answer();
  };
  const std::vector<std::byte> oversized(60'000);
  CHECK(answer_to(std::span(oversized).first(1)) == -1);
  CHECK(answer_to(std::span(oversized).first(sizeof(Request))) == -1);
  CHECK(answer_to(oversized) == -1);
  CHECK(answer_to(bytes_of({.operation = Operation::kHello}), {session.memory.value()}) == -1);
  CHECK(answer_to(bytes_of({.operation = Operation::kOpenBacking})) == -1);
  CHECK(answer_to(bytes_of({.version = 9, .operation = Operation::kHello})) == EOPNOTSUPP);
  CHECK(answer_to(bytes_of({.operation = Operation{77}})) == EPERM);
  CHECK(answer_to(bytes_of({.operation = Operation::kUnmount})) == EPERM);
  CHECK(daemon.open_backings().empty());
}

TEST_CASE("a keeper does not wait for a client that asks and never reads") {
  require_fuse();
  const Workplace place;
  RunningKeeper keeper(place.options());
  const RawClient rude(place.socket());
  // Until its answers fill the socket and the keeper hangs up, which is when sending fails.
  CHECK(eventually([&] {
    for (int burst = 0; burst < 64; ++burst) {
      if (!rude.try_send(bytes_of({.operation = Operation::kUnmount}))) return true;
    }
    return false;
  }));
  KeeperClient daemon = KeeperClient::connect(place.socket());
  CHECK(daemon.hello().mountpoint == place.mountpoint());
}

TEST_CASE("more connections than a keeper takes are refused, and room comes back") {
  require_fuse();
  const Workplace place;
  RunningKeeper keeper(place.options());
  {
    std::vector<KeeperClient> crowd;
    for (int i = 0; i < 8; ++i) crowd.push_back(KeeperClient::connect(place.socket()));
    static_cast<void>(crowd.back().hello());  // by now all eight are accepted
    KeeperClient late = KeeperClient::connect(place.socket());
    CHECK_THROWS(late.hello());
  }
  CHECK(eventually([&] {
    try {
      return KeeperClient::connect(place.socket()).hello().mountpoint == place.mountpoint();
    } catch (const Error&) {
      return false;
    }
  }));
}

}  // namespace
}  // namespace weightfs::keeper::test
