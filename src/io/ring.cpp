// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "io/ring.hpp"

#include "base/error.hpp"

#include <liburing.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <cerrno>
#include <utility>

namespace weightfs::io {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// The completion of the request that cancels the others.
constexpr std::uint64_t kCancelTag = ~0ULL;

}  // namespace

class Ring::State {
 public:
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (ready_) io_uring_queue_exit(&ring_);
  }

  bool open(unsigned entries) {
    wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    // One more than the reads, for the request that cancels them.
    ready_ = wake_ && io_uring_queue_init(entries + 1, &ring_, 0) == 0;
    return ready_;
  }

  void submit(const Fd& fd, std::uint64_t offset, std::span<std::byte> buffer, std::uint64_t tag) {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    if (entry == nullptr) throw Error(Errc::kInternal, "more reads than the ring was made for");
    io_uring_prep_read(entry, fd.value(), buffer.data(), static_cast<unsigned>(buffer.size()),
                       offset);
    entry->user_data = tag;
    int submitted = 0;
    do {
      submitted = io_uring_submit(&ring_);
    } while (submitted == -EINTR || submitted == -EAGAIN || submitted == -EBUSY);
    if (submitted < 0) throw_errno(-submitted, "submit a read");
    ++in_flight_;
  }

  std::optional<Completion> wait(const std::stop_token& stop) {
    const std::stop_callback wake(stop, [this]() noexcept { ::eventfd_write(wake_.value(), 1); });
    for (;;) {
      if (stop.stop_requested()) return std::nullopt;
      if (const auto completion = take()) return completion;
      await_event(-1);
    }
  }

  bool drain(milliseconds patience) noexcept {
    if (in_flight_ > 0) cancel();
    const auto deadline = steady_clock::now() + patience;
    while (in_flight_ > 0) {
      if (take()) continue;
      const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
      if (left <= milliseconds(0)) return false;
      await_event(static_cast<int>(left.count()));
    }
    return true;
  }

 private:
  std::optional<Completion> take() noexcept {
    io_uring_cqe* entry = nullptr;
    while (io_uring_peek_cqe(&ring_, &entry) == 0) {
      const Completion completion{entry->user_data, entry->res};
      io_uring_cqe_seen(&ring_, entry);
      if (completion.tag == kCancelTag) continue;
      --in_flight_;
      return completion;
    }
    return std::nullopt;
  }

  /// Until there is a completion, the wake-up comes, or `timeout` milliseconds have passed. The
  /// ring's descriptor is readable while its completion queue is not empty (io_uring(7)).
  void await_event(int timeout) noexcept {
    pollfd polled[] = {{ring_.ring_fd, POLLIN, 0}, {wake_.value(), POLLIN, 0}};
    ::poll(polled, 2, timeout);
    // Always taken back: a wake-up left over from the last stop would keep the next wait spinning.
    eventfd_t ignored = 0;
    if (polled[1].revents != 0) ::eventfd_read(wake_.value(), &ignored);
  }

  /// Reads that have not started end now; on a local disk the others are about to. Kernels
  /// before 5.19 refuse to cancel all at once, and the wait is for the reads themselves.
  void cancel() noexcept {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    if (entry == nullptr) return;
    io_uring_prep_cancel64(entry, 0, IORING_ASYNC_CANCEL_ANY);
    entry->user_data = kCancelTag;
    io_uring_submit(&ring_);
  }

  io_uring ring_{};
  bool ready_ = false;
  Fd wake_;
  unsigned in_flight_ = 0;
};

Ring::Ring(std::unique_ptr<State> state) : state_(std::move(state)) {
}

Ring::~Ring() = default;

std::unique_ptr<Ring> Ring::create(unsigned entries) {
  auto state = std::make_unique<State>();
  if (!state->open(entries)) return nullptr;
  return std::unique_ptr<Ring>(new Ring(std::move(state)));
}

void Ring::submit(const Fd& fd, std::uint64_t offset, std::span<std::byte> buffer,
                  std::uint64_t tag) {
  state_->submit(fd, offset, buffer, tag);
}

std::optional<ReadQueue::Completion> Ring::wait(const std::stop_token& stop) {
  return state_->wait(stop);
}

bool Ring::drain(milliseconds patience) noexcept {
  return state_->drain(patience);
}

}  // namespace weightfs::io
