// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "toy_daemon.hpp"

#include <linux/fuse.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace weightfs::keeper::test {

namespace {

// Fields that kernel headers name since 6.9 only, by their place (linux/fuse.h, 7.40).
constexpr std::size_t kMaxStackDepth = 36;  // of fuse_init_out
constexpr std::size_t kBackingId = 12;      // of fuse_open_out

template <class Message>
void set_field(Message& message, std::size_t offset, std::int32_t value) {
  std::memcpy(reinterpret_cast<char*>(&message) + offset, &value, sizeof value);
}

constexpr std::uint32_t kPassthroughFlag2 = 1U << 5;  // FUSE_PASSTHROUGH, bit 37
constexpr std::uint32_t kOpenPassthrough = 1U << 7;   // FOPEN_PASSTHROUGH
constexpr std::uint64_t kBlobNode = 2;
constexpr int kPatienceMs = 10'000;

template <class T>
std::span<const std::byte> body_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

fuse_attr attributes(std::uint64_t node, std::uint64_t size) {
  fuse_attr attr{};
  attr.ino = node;
  attr.mode = node == kBlobNode ? S_IFREG | 0444 : S_IFDIR | 0555;
  attr.nlink = 1;
  attr.size = node == kBlobNode ? size : 0;
  return attr;
}

}  // namespace

ToyDaemon::ToyDaemon(const Fd& fuse, Options options, Session session)
    : fuse_(fuse), options_(options), stop_(::eventfd(0, EFD_CLOEXEC)) {
  if (!options_.flushes) waiting_.lock()->emplace();
  pollfd request{.fd = fuse_.value(), .events = POLLIN, .revents = 0};
  if (session == Session::kNew && (::poll(&request, 1, kPatienceMs) != 1 || !serve_one())) {
    throw std::runtime_error("no FUSE_INIT came");
  }
  thread_ = std::jthread([this] {
    for (;;) {
      std::array<pollfd, 2> ready{pollfd{.fd = fuse_.value(), .events = POLLIN, .revents = 0},
                                  pollfd{.fd = stop_.value(), .events = POLLIN, .revents = 0}};
      ::poll(ready.data(), ready.size(), -1);
      if (ready[1].revents != 0 || (ready[0].revents != 0 && !serve_one())) return;
    }
  });
}

ToyDaemon::~ToyDaemon() {
  const std::uint64_t one = 1;
  if (::write(stop_.value(), &one, sizeof one) < 0) std::abort();
}

std::size_t ToyDaemon::waiting_flushes() {
  return waiting_.with([](const auto& waiting) { return waiting ? waiting->size() : 0; });
}

void ToyDaemon::answer_flushes() {
  auto waiting = waiting_.lock();
  if (!*waiting) return;
  for (const std::uint64_t unique : **waiting) answer(unique, 0);
  waiting->reset();
}

void ToyDaemon::answer(std::uint64_t unique, int error, std::span<const std::byte> body) const {
  fuse_out_header header{};
  header.len = static_cast<std::uint32_t>(sizeof header + body.size());
  header.error = -error;
  header.unique = unique;
  iovec parts[2] = {{&header, sizeof header}, {const_cast<std::byte*>(body.data()), body.size()}};
  // Fails only where the asker is gone.
  if (::writev(fuse_.value(), parts, 2) < 0) return;
}

bool ToyDaemon::serve_one() {
  std::vector<std::byte> buffer(256 << 10);
  const ssize_t got = ::read(fuse_.value(), buffer.data(), buffer.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN || errno == ENOENT;
  fuse_in_header in{};
  std::memcpy(&in, buffer.data(), sizeof in);
  const char* argument = reinterpret_cast<const char*>(buffer.data() + sizeof in);
  switch (in.opcode) {
    case FUSE_INIT: {
      fuse_init_in offer{};
      std::memcpy(&offer, argument,
                  std::min(sizeof offer, static_cast<std::size_t>(got) - sizeof in));
      fuse_init_out out{};
      out.major = FUSE_KERNEL_VERSION;
      out.minor = FUSE_KERNEL_MINOR_VERSION;
      out.max_readahead = offer.max_readahead;
      out.max_write = 128 << 10;
      out.time_gran = 1;
      out.flags = FUSE_INIT_EXT;
      if (options_.passthrough) out.flags2 = offer.flags2 & kPassthroughFlag2;
      set_field(out, kMaxStackDepth, 1);
      answer(in.unique, 0, body_of(out));
      return true;
    }
    case FUSE_GETATTR: {
      fuse_attr_out out{};
      out.attr = attributes(in.nodeid, options_.blob_size);
      out.attr_valid = options_.attributes_valid;
      answer(in.unique, 0, body_of(out));
      return true;
    }
    case FUSE_LOOKUP: {
      if (options_.blob_size == 0 || std::string_view(argument) != "blob") {
        answer(in.unique, ENOENT);
        return true;
      }
      fuse_entry_out out{};
      out.nodeid = kBlobNode;
      out.attr = attributes(kBlobNode, options_.blob_size);
      answer(in.unique, 0, body_of(out));
      return true;
    }
    case FUSE_OPEN: {
      fuse_open_out out{};
      if (options_.backing_id != 0) out.open_flags = kOpenPassthrough;
      set_field(out, kBackingId, options_.backing_id);
      answer(in.unique, 0, body_of(out));
      return true;
    }
    case FUSE_OPENDIR:
      answer(in.unique, 0, body_of(fuse_open_out{}));
      return true;
    case FUSE_STATFS: {
      fuse_statfs_out out{};
      out.st.bsize = 4096;
      out.st.blocks = 123;
      out.st.namelen = 255;
      answer(in.unique, 0, body_of(out));
      return true;
    }
    case FUSE_FLUSH: {
      auto waiting = waiting_.lock();
      if (*waiting) {
        (*waiting)->push_back(in.unique);
      } else {
        answer(in.unique, 0);
      }
      return true;
    }
    case FUSE_RELEASE:
    case FUSE_RELEASEDIR:
      answer(in.unique, 0);
      return true;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
      return true;
    default:
      answer(in.unique, ENOSYS);
      return true;
  }
}

}  // namespace weightfs::keeper::test
