// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#define FUSE_USE_VERSION 317

#include "fuse/session.hpp"

#include "base/error.hpp"
#include "base/synchronized.hpp"
#include "base/thread.hpp"
#include "fuse/operations.hpp"
#include "fuse/request_number.hpp"

#include <fuse_lowlevel.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <latch>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace weightfs::fuse {

namespace {

using keeper::SessionMemory;

// From the kernel's include/uapi/linux/fuse.h; libfuse keeps its copy private.
struct RequestHeader {
  std::uint32_t length;
  std::uint32_t opcode;
  std::uint64_t unique;
  std::uint64_t node;
  std::uint32_t uid, gid, pid;
  std::uint16_t total_extlen, padding;
};
static_assert(sizeof(RequestHeader) == 40);
struct ReplyHeader {
  std::uint32_t length;
  std::int32_t error;
  std::uint64_t unique;
};
static_assert(sizeof(ReplyHeader) == 16);
constexpr std::uint32_t kOpcodeInit = 26;
constexpr std::int32_t kNotifyResend = 7;
// Even, as those of the kernel are, and far from any that it will count up to.
constexpr std::uint64_t kSyntheticUnique = 1ULL << 62;

// The kernel insists on room for the largest WRITE, whether or not there will be one.
constexpr std::size_t kBufferBytes = kMaxTransfer + (8 << 10);

struct SessionDeleter {
  void operator()(fuse_session* session) const noexcept { fuse_session_destroy(session); }
};

ssize_t write_reply(int fd, iovec* parts, int count, void* userdata) {
  if (!static_cast<OperationContext*>(userdata)->muted) return ::writev(fd, parts, count);
  // As of a request that the kernel gave up: libfuse says nothing, and what was counted for the
  // reply is taken back.
  errno = ENOENT;
  return -1;
}

ssize_t read_request(int fd, void* buffer, std::size_t size, void*) {
  return ::read(fd, buffer, size);
}

}  // namespace

class Session::State {
 public:
  State(Fd device, vfs::Filesystem& filesystem, OpenModes& modes, SessionMemory& memory,
        Notifier& notifier, SessionOptions options, Log log)
      : filesystem_(filesystem),
        modes_(modes),
        memory_(memory),
        notifier_(notifier),
        options_(std::move(options)),
        log_(std::move(log)),
        context_{.filesystem = filesystem,
                 .modes = modes,
                 .deployment = options_.deployment,
                 .parked = {},
                 .muted = false,
                 .want_passthrough = options_.passthrough,
                 .has_passthrough = false},
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!wake_) throw_errno(errno, "eventfd");
    make_session(std::move(device));
  }

  ~State() { stop(); }

  void start() {
    adopt_open_nodes();
    if (memory_.init_state() == SessionMemory::InitState::kDone) resume();
    // An INIT that was read but not saved is lost, and nothing in the memory tells: so always.
    ask_resend();
    for (unsigned i = 0; i < options_.threads; ++i) {
      workers_.push_back(
          start_thread("fuse-" + std::to_string(i), [this](std::stop_token) { serve(); }));
    }
  }

  void wait() {
    auto ended = ended_.lock();
    ended.wait(ended_changed_, [&] { return *ended; });
  }

  [[nodiscard]] bool connected() const {
    pollfd state{.fd = fd_, .events = 0, .revents = 0};
    return ::poll(&state, 1, 0) <= 0 || (state.revents & (POLLERR | POLLHUP)) == 0;
  }

  void stop() {
    end();
    workers_.clear();  // joins
    context_.muted = true;
  }

  void end() {
    ended_.with([](bool& ended) { ended = true; });
    ended_changed_.notify_all();
    // Never read: level-triggered, so that it wakes every worker.
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_.value(), &one, sizeof one);
  }

 private:
  void make_session(Fd device) {
    fd_ = device.value();
    const int flags = ::fcntl(fd_, F_GETFL);
    if (flags < 0 || ::fcntl(fd_, F_SETFL, flags | O_NONBLOCK) < 0) {
      throw_errno(errno, "make the FUSE descriptor non-blocking");
    }
    char name[] = "weightfs";
    char* argv[] = {name, nullptr};
    fuse_args args = FUSE_ARGS_INIT(1, argv);
    session_.reset(fuse_session_new(&args, &operations(), sizeof(fuse_lowlevel_ops), &context_));
    fuse_opt_free_args(&args);
    if (!session_) throw Error(Errc::kInternal, "libfuse refused the session");
    // The descriptor is ours to read: workers wait on it together with the stop signal.
    fuse_custom_io io = {};
    io.writev = write_reply;
    io.read = read_request;
    if (fuse_session_custom_io(session_.get(), &io, sizeof io, fd_) != 0) {
      throw Error(Errc::kInternal, "libfuse refused the descriptor");
    }
    notices_ = device.duplicate();
    [[maybe_unused]] const int now_libfuses = device.release();  // closed by fuse_session_destroy
  }

  void adopt_open_nodes() {
    for (const SessionMemory::Backing& open : memory_.backings()) {
      filesystem_.adopt(vfs::NodeId(open.node_id), open.opens);
    }
  }

  void resume() {
    feed_saved_init();
    ready();
    log_.info("resumed the session of an earlier daemon");
  }

  // Gives libfuse the INIT that it insists on. Its reply goes to a request that does not exist.
  void feed_saved_init() {
    std::vector<std::byte> request = memory_.saved_init();
    RequestHeader header;
    std::memcpy(&header, request.data(), sizeof header);
    header.unique = kSyntheticUnique;
    std::memcpy(request.data(), &header, sizeof header);
    process(request.data(), request.size());
  }

  void ask_resend() {
    const ReplyHeader notification{sizeof(ReplyHeader), kNotifyResend, 0};
    const bool first = memory_.init_state() == SessionMemory::InitState::kNone;
    if (::write(fd_, &notification, sizeof notification) < 0 && !first) {
      // Before Linux 6.9 the readers that the dead daemon had taken on wait until they are killed.
      log_.warning("the kernel cannot resend requests: {}", std::strerror(errno));
    }
  }

  void ready() {
    if (ready_called_.exchange(true)) return;
    if (!options_.passthrough) {
      modes_.disable("switched off (--no-passthrough)");
    } else if (!context_.has_passthrough) {
      modes_.disable("this kernel does not have FUSE passthrough (Linux 6.9 and later do)");
    }
    notifier_.attach(std::move(notices_));
    if (options_.on_ready) options_.on_ready();
    ready_.count_down();
  }

  void process(std::byte* data, std::size_t size) {
    RequestHeader header;
    std::memcpy(&header, data, sizeof header);
    const RequestNumber number(header.unique);
    fuse_buf buffer = {};
    buffer.mem = data;
    buffer.size = size;
    fuse_session_process_buf(session_.get(), &buffer);
  }

  void serve() noexcept {
    const Fd poll(::epoll_create1(EPOLL_CLOEXEC));
    watch(poll, fd_, EPOLLIN | EPOLLEXCLUSIVE);
    watch(poll, wake_.value(), EPOLLIN);
    const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kBufferBytes);
    while (!stopping()) {
      const ssize_t got = ::read(fd_, buffer.get(), kBufferBytes);
      if (got >= static_cast<ssize_t>(sizeof(RequestHeader))) {
        handle(std::span(buffer.get(), static_cast<std::size_t>(got)));
      } else if (got >= 0 || errno == ENODEV) {
        end();  // unmounted, aborted, or the peer of a socket is gone
      } else if (errno == EAGAIN) {
        std::array<epoll_event, 2> events;
        ::epoll_wait(poll.value(), events.data(), events.size(), -1);
      } else if (errno != EINTR && errno != ENOENT) {  // ENOENT: interrupted before it was read
        log_.error("reading a request: {}", std::strerror(errno));
        end();
      }
    }
  }

  static void watch(const Fd& poll, int fd, std::uint32_t events) {
    epoll_event event = {};
    event.events = events;
    ::epoll_ctl(poll.value(), EPOLL_CTL_ADD, fd, &event);
  }

  void handle(std::span<std::byte> request) {
    RequestHeader header;
    std::memcpy(&header, request.data(), sizeof header);
    if (header.opcode == kOpcodeInit) {
      // Saved first: whatever happens next, a successor knows what the kernel asked.
      memory_.save_init(request);
      process(request.data(), request.size());
      memory_.mark_init_done();
      ready();
      return;
    }
    // The kernel speaks after INIT only. So a predecessor died between its reply to INIT and the
    // mark.
    if (memory_.init_state() == SessionMemory::InitState::kPending) {
      std::call_once(late_init_, [&] {
        feed_saved_init();
        memory_.mark_init_done();
        ready();
      });
    }
    // What on_ready finds out (passthrough) decides which node a name leads to, and the kernel
    // believes that for ever.
    ready_.wait();
    process(request.data(), request.size());
  }

  [[nodiscard]] bool stopping() {
    return ended_.with([](bool ended) { return ended; });
  }

  vfs::Filesystem& filesystem_;
  OpenModes& modes_;
  SessionMemory& memory_;
  Notifier& notifier_;
  const SessionOptions options_;
  const Log log_;
  OperationContext context_;
  std::unique_ptr<fuse_session, SessionDeleter> session_;  // owns fd_
  int fd_ = -1;
  Fd notices_;  // a second descriptor, for the Notifier
  const Fd wake_;
  std::atomic<bool> ready_called_ = false;
  std::latch ready_{1};
  std::once_flag late_init_;
  Synchronized<bool> ended_;
  std::condition_variable_any ended_changed_;
  std::vector<std::jthread> workers_;
};

Session::Session(Fd device, vfs::Filesystem& filesystem, OpenModes& modes, SessionMemory& memory,
                 Notifier& notifier, SessionOptions options, Log log)
    : state_(std::make_unique<State>(std::move(device), filesystem, modes, memory, notifier,
                                     std::move(options), std::move(log))) {
}

Session::~Session() = default;

void Session::start() {
  state_->start();
}

void Session::wait() {
  state_->wait();
}

bool Session::connected() const {
  return state_->connected();
}

void Session::stop() {
  state_->stop();
}

void Session::end() {
  state_->end();
}

}  // namespace weightfs::fuse
