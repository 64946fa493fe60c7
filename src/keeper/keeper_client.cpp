// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "keeper/keeper_client.hpp"

#include "base/error.hpp"
#include "base/synchronized.hpp"
#include "base/unix_address.hpp"
#include "keeper/protocol.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace weightfs::keeper {

namespace {

/// A keeper answers in a fraction of a millisecond; one that does not for this long is as good as
/// gone.
constexpr timeval kPatience{.tv_sec = 30, .tv_usec = 0};

struct Answer {
  Response response;
  std::vector<Fd> descriptors;

  [[nodiscard]] std::string_view payload() const {
    return {response.payload.data(), response.size};
  }
};

}  // namespace

class KeeperClient::State {
 public:
  explicit State(Fd socket) : descriptor_(socket.value()), socket_(std::move(socket)) {
    // Fails on nothing but a bad descriptor, which the first call reports.
    ::fcntl(descriptor_, F_SETFD, FD_CLOEXEC);  // an inherited one is not
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
    ::setsockopt(descriptor_, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  }

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

  /// The lock is held across the exchange because the exchange is what it guards: an answer belongs
  /// to the request before it.
  Answer call(Operation operation, std::int64_t value = 0, std::span<const int> descriptors = {}) {
    const Request request{.operation = operation, .value = value};
    Answer answer;
    const bool exchanged = socket_.with([&](const Fd& socket) {
      Response& response = answer.response;
      if (send_message(socket.value(), std::as_bytes(std::span(&request, 1)), descriptors) &&
          receive_message(socket.value(), std::as_writable_bytes(std::span(&response, 1)),
                          answer.descriptors) == Received::kMessage &&
          response.magic == kProtocolMagic && response.size <= response.payload.size()) {
        return true;
      }
      // Out of step for good. The descriptor stays open, since somebody may be polling its number.
      ::shutdown(socket.value(), SHUT_RDWR);
      return false;
    });
    if (!exchanged) throw Error(Errc::kUnavailable, "the keeper is gone");
    if (answer.response.error != 0) {
      throw Error(from_errno(answer.response.error), std::string(answer.payload()));
    }
    return answer;
  }

 private:
  int descriptor_;
  Synchronized<Fd> socket_;
};

KeeperClient::KeeperClient(Fd socket) : state_(std::make_unique<State>(std::move(socket))) {
}
KeeperClient::KeeperClient(KeeperClient&&) noexcept = default;
KeeperClient::~KeeperClient() = default;

KeeperClient KeeperClient::connect(const std::filesystem::path& path) {
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) throw_errno(errno, "create a socket");
  const UnixAddress address(path);
  if (::connect(socket.value(), address.get(), address.size()) != 0) {
    const int error = errno;
    if (error == ENOENT || error == ECONNREFUSED) {
      throw Error(Errc::kUnavailable, "no keeper listens at " + path.string());
    }
    throw_errno(error, "connect to the keeper at " + path.string());
  }
  return KeeperClient(std::move(socket));
}

Session KeeperClient::hello() {
  Answer answer = state_->call(Operation::kHello);
  if (answer.descriptors.size() != 2) {
    throw Error(Errc::kInternal, "the keeper answered hello without descriptors");
  }
  // The kernel's word for who is at the other end, in this process's pid namespace.
  ucred peer{};
  socklen_t size = sizeof peer;
  ::getsockopt(state_->descriptor(), SOL_SOCKET, SO_PEERCRED, &peer, &size);
  return {.fuse = std::move(answer.descriptors[0]),
          .memory = std::move(answer.descriptors[1]),
          .keeper_pid = peer.pid,
          .mountpoint = std::string(answer.payload())};
}

std::int32_t KeeperClient::open_backing(const Fd& file) {
  const int descriptor = file.value();
  const Answer answer = state_->call(Operation::kOpenBacking, 0, std::span(&descriptor, 1));
  return static_cast<std::int32_t>(answer.response.value);
}

void KeeperClient::close_backing(std::int32_t backing_id) {
  state_->call(Operation::kCloseBacking, backing_id);
}

std::vector<std::int32_t> KeeperClient::open_backings() {
  std::vector<std::int32_t> all;
  for (;;) {
    const Answer page = state_->call(Operation::kListBackings, all.empty() ? 0 : all.back());
    const std::size_t count = page.response.size / sizeof(std::int32_t);
    if (count == 0) return all;
    all.resize(all.size() + count);
    std::memcpy(&*(all.end() - static_cast<std::ptrdiff_t>(count)), page.payload().data(),
                count * sizeof(std::int32_t));
  }
}

void KeeperClient::set_read_ahead(std::uint32_t kilobytes) {
  state_->call(Operation::kSetReadAhead, kilobytes);
}

void KeeperClient::unmount(Detach detach) {
  state_->call(Operation::kUnmount, detach == Detach::kLazy ? 1 : 0);
}

int KeeperClient::descriptor() const noexcept {
  return state_->descriptor();
}

}  // namespace weightfs::keeper
