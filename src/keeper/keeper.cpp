// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "keeper/keeper.hpp"

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "keeper/backing_files.hpp"
#include "keeper/listener.hpp"
#include "keeper/mount.hpp"
#include "keeper/protocol.hpp"
#include "keeper/session_memory.hpp"
#include "keeper/supervisor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <algorithm>
#include <cstring>
#include <list>
#include <optional>
#include <string_view>
#include <utility>

namespace weightfs::keeper {

namespace {

/// How often the mount is looked at. /dev/fuse is not in the poll set for good: the kernel wakes
/// every poller of it for every request.
constexpr std::chrono::milliseconds kTick{1000};
constexpr std::size_t kMaxConnections = 8;
constexpr std::int64_t kMaxReadAhead = 64 << 10;  // KiB
constexpr int kOomScore = -500;

/// Makes the kernel choose others first when memory runs out: without the keeper there is no mount.
/// Best effort. Returns what the score was.
std::string lower_oom_score() {
  try {
    constexpr const char* kPath = "/proc/self/oom_score_adj";
    std::string old = read_file(kPath, 64);
    if (std::stoi(old) > kOomScore) {
      const std::string text = std::to_string(kOomScore);
      write_at(open_file(kPath, O_WRONLY), 0, std::as_bytes(std::span(text)));
    }
    return old;
  } catch (const std::exception&) {
    return {};
  }
}

Response reply(int error, std::string_view message) {
  Response response{.error = error};
  response.size = static_cast<std::uint32_t>(std::min(message.size(), response.payload.size()));
  std::memcpy(response.payload.data(), message.data(), response.size);
  return response;
}

}  // namespace

class Keeper::State {
 public:
  State(KeeperOptions options, Log log)
      : options_(std::move(options)),
        log_(std::move(log)),
        memory_(SessionMemory::create()),
        listener_(make_listener()),
        mount_(options_.mountpoint, options_.source_name, log_),
        backings_(mount_.fuse()) {
    log_.info("mounted on {}", mount_.path());
  }

  int run(int stop_descriptor) {
    const std::string oom_score = lower_oom_score();
    if (!options_.daemon_command.empty()) {
      supervisor_.emplace(SupervisorOptions{.daemon = {.command = options_.daemon_command,
                                                       .uid = options_.daemon_uid,
                                                       .gid = options_.daemon_gid,
                                                       .inherited = options_.inherited,
                                                       .oom_score_adj = oom_score},
                                            .start_patience = options_.start_patience,
                                            .stop_grace = options_.stop_grace,
                                            .kill_patience = options_.kill_patience,
                                            .abort_connection = [this] { mount_.abort(); }},
                          log_);
    }
    while (!result_ || (supervisor_ && supervisor_->running())) turn(stop_descriptor);
    // It may wait for an answer of this mount, which nobody is left to give.
    if (supervisor_ && supervisor_->left_behind() > 0) mount_.abort();
    mount_.unmount(Mount::IfBusy::kDetach);
    log_.info("unmounted {}", mount_.path());
    return *result_;
  }

 private:
  struct Connection {
    Fd socket;
    bool supervised = false;
  };
  using Connections = std::list<Connection>;

  std::optional<Listener> make_listener() const {
    if (options_.socket.empty()) {
      if (!options_.daemon_command.empty()) return std::nullopt;
      throw Error(Errc::kInvalid, "the keeper needs a socket or a daemon to start");
    }
    return std::optional<Listener>(std::in_place, options_.socket, options_.daemon_uid,
                                   options_.daemon_gid, log_);
  }

  /// One round of the loop. Connections come before the end of the process that holds one, so that
  /// its last word counts; the mount comes before it, too, so that a daemon that ends because the
  /// connection was aborted is not taken for one that wanted to.
  void turn(int stop_descriptor) {
    std::vector<pollfd> watched{
        watch(result_ ? -1 : stop_descriptor), watch(listener_ ? listener_->descriptor() : -1),
        watch(supervisor_ ? supervisor_->descriptor() : -1), watch(options_.reload_descriptor)};
    for (const Connection& connection : connections_) {
      watched.push_back(watch(connection.socket.value()));
    }
    if (::poll(watched.data(), watched.size(), patience()) < 0) return;  // EINTR
    now_ = clock_.now();
    if (watched[3].revents != 0) reload();
    auto polled = watched.begin() + 4;
    for (auto at = connections_.begin(); at != connections_.end() && polled != watched.end();
         ++polled) {
      const auto connection = at++;
      if (polled->revents != 0 && !serve(*connection)) drop(connection);
    }
    check_mount();
    if (watched[0].revents != 0) finish(0);
    if (watched[1].revents != 0) accept();
    if (watched[2].revents != 0 || (supervisor_ && look_is_due() && supervisor_->hangs(now_))) {
      reap();
    }
    if (supervisor_) {
      if (std::optional<Fd> socket = supervisor_->advance(now_)) {
        connections_.push_back({.socket = std::move(*socket), .supervised = true});
      }
    }
  }

  void reload() {
    std::array<char, sizeof(signalfd_siginfo)> signal{};
    while (::read(options_.reload_descriptor, signal.data(), signal.size()) > 0) {
    }
    if (supervisor_) supervisor_->reload();
  }

  bool look_is_due() {
    if (now_ - last_look_ < kTick) return false;
    last_look_ = now_;
    static_cast<void>(supervisor_->left_behind());  // reaps those that have ended
    return true;
  }

  /// The connection goes with the process, whatever children of it may still hold the socket: the
  /// next daemon must not find it busy.
  void reap() {
    const auto left = std::find_if(connections_.begin(), connections_.end(),
                                   [](const Connection& each) { return each.supervised; });
    if (left != connections_.end()) drop(left);
    if (const std::optional<int> status = supervisor_->reap(now_)) finish(*status);
  }

  static pollfd watch(int descriptor) { return {.fd = descriptor, .events = POLLIN, .revents = 0}; }

  int patience() const {
    std::chrono::milliseconds left = kTick;
    if (supervisor_ && supervisor_->due()) {
      left = std::clamp(
          std::chrono::ceil<std::chrono::milliseconds>(*supervisor_->due() - clock_.now()),
          std::chrono::milliseconds(0), kTick);
    }
    return static_cast<int>(left.count());
  }

  /// From here on the loop only waits for the daemon that it started itself, and not for ever.
  void finish(int status) {
    if (result_) return;
    result_ = status;
    if (supervisor_) supervisor_->stop(now_);
  }

  void check_mount() {
    if (result_ || mount_.connected()) return;
    if (mount_.in_place()) {
      log_.error("the connection of {} was aborted", mount_.path());
      return finish(kKeeperGaveUp);
    }
    finish(0);
  }

  void accept() {
    std::optional<Fd> socket = listener_->accept();
    if (!socket) return;
    if (connections_.size() >= kMaxConnections) {
      log_.warning("refused a connection: {} are open", connections_.size());
    } else {
      connections_.push_back({.socket = std::move(*socket)});
    }
  }

  void drop(Connections::iterator connection) {
    if (daemon_ == &*connection) {
      log_.info("the daemon has left");
      daemon_ = nullptr;
      if (released_) finish(0);
    }
    if (connection->supervised) supervisor_->expect_end(now_);
    // A child that is stuck may hold the socket, too.
    ::shutdown(connection->socket.value(), SHUT_RDWR);
    connections_.erase(connection);
  }

  /// Answers one request; false to close the connection. Descriptors that come where none belongs
  /// are not taken: they go with the connection.
  bool serve(Connection& connection) {
    const int socket = connection.socket.value();
    Request request;
    const Peeked peeked = peek_message(socket, std::as_writable_bytes(std::span(&request, 1)));
    if (peeked.received != Received::kMessage) return peeked.received == Received::kNothing;
    const bool wants_file = request.operation == Operation::kOpenBacking;
    const bool may_give = daemon_ == &connection && request.version == kProtocolVersion;
    if (request.magic != kProtocolMagic || (wants_file && !may_give) ||
        (peeked.attached == Attached::kDescriptors) != wants_file) {
      log_.warning("closing a connection that does not speak the keeper's protocol");
      return false;
    }
    if (!wants_file) drop_message(socket);
    Response response;
    std::vector<int> given;
    try {
      if (request.version != kProtocolVersion) {
        throw Error(Errc::kUnsupported,
                    fmt::format("the keeper speaks version {} of its protocol, the daemon {}",
                                kProtocolVersion, request.version));
      }
      if (request.operation == Operation::kHello) {
        response = greet(connection);
        given = {mount_.fuse().value(), memory_.value()};
      } else if (daemon_ != &connection) {
        throw Error(Errc::kPermission, "a daemon says hello first");
      } else if (wants_file) {
        const std::optional<std::int32_t> id = backings_.open_next(socket);
        if (!id) {
          log_.error("closing the connection of a daemon whose file could not be registered");
          return false;
        }
        response.value = *id;
      } else {
        response = answer(request.operation, request.value);
      }
    } catch (const Error& error) {
      response = reply(to_errno(error.code()), error.what());
    }
    return send_message(socket, std::as_bytes(std::span(&response, 1)), given);
  }

  Response greet(Connection& connection) {
    if (daemon_ && daemon_ != &connection) {
      throw Error(Errc::kBusy, "another daemon serves " + mount_.path());
    }
    daemon_ = &connection;
    log_.info("a daemon serves {}", mount_.path());
    return reply(0, mount_.path());
  }

  Response answer(Operation operation, std::int64_t value) {
    switch (operation) {
      case Operation::kCloseBacking:
        backings_.close(static_cast<std::int32_t>(value));
        return {};
      case Operation::kListBackings:
        return list_backings(static_cast<std::int32_t>(value));
      case Operation::kSetReadAhead:  // the last that a daemon asks for before it serves
        if (daemon_->supervised) supervisor_->note_up(now_);
        if (value < 0 || value > kMaxReadAhead) {
          throw Error(Errc::kInvalid, fmt::format("a read-ahead of {} KiB", value));
        }
        mount_.set_read_ahead(static_cast<std::uint32_t>(value));
        return {};
      case Operation::kUnmount:
        mount_.unmount(value == 1 ? Mount::IfBusy::kDetach : Mount::IfBusy::kFail);
        released_ = true;
        return {};
      case Operation::kHello:
      case Operation::kOpenBacking:
        break;
    }
    throw Error(Errc::kInvalid, "the keeper does not know this request");
  }

  Response list_backings(std::int32_t after) const {
    Response page;
    const auto& ids = backings_.ids();
    for (auto id = ids.upper_bound(after);
         id != ids.end() && page.size + sizeof *id <= page.payload.size(); ++id) {
      std::memcpy(page.payload.data() + page.size, &*id, sizeof *id);
      page.size += sizeof *id;
    }
    return page;
  }

  KeeperOptions options_;
  Log log_;
  SystemClock clock_;
  Fd memory_;
  std::optional<Listener> listener_;
  Mount mount_;
  BackingFiles backings_;
  std::optional<Supervisor> supervisor_;
  Connections connections_;
  const Connection* daemon_ = nullptr;  ///< the one that said hello
  bool released_ = false;               ///< the daemon has asked for the unmount
  std::optional<int> result_;
  Clock::TimePoint now_{};
  Clock::TimePoint last_look_{};
};

Keeper::Keeper(KeeperOptions options, Log log)
    : state_(std::make_unique<State>(std::move(options), std::move(log))) {
}
Keeper::~Keeper() = default;

int Keeper::run(int stop_descriptor) {
  return state_->run(stop_descriptor);
}

}  // namespace weightfs::keeper
