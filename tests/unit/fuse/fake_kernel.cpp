// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fake_kernel.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <utility>

namespace weightfs::fuse::test {

namespace {

constexpr int kPatience = 10'000;  // milliseconds
constexpr std::size_t kLargestReply = 2 << 20;
constexpr std::uint64_t kResent = 1ULL << 63;  // FUSE_UNIQUE_RESEND, newer than some headers

}  // namespace

FakeKernel::FakeKernel() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::runtime_error("socketpair");
  }
  kernel_ = Fd(ends[0]);
  server_ = Fd(ends[1]);
  const int size = kLargestReply;
  ::setsockopt(ends[1], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
}

Reply FakeKernel::init() {
  fuse_init_in in = {};
  in.major = FUSE_KERNEL_VERSION;
  in.minor = FUSE_KERNEL_MINOR_VERSION;
  in.max_readahead = 128 << 10;
  in.flags = FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_DO_READDIRPLUS | FUSE_READDIRPLUS_AUTO |
             FUSE_PARALLEL_DIROPS | FUSE_MAX_PAGES | FUSE_EXPLICIT_INVAL_DATA;
  // The second word of flags; passthrough is bit 37, newer than some headers.
  in.flags |= FUSE_INIT_EXT;
  in.flags2 = 1U << (37 - 32);
  return call(FUSE_INIT, 0, in);
}

Reply FakeKernel::call(std::uint32_t opcode, std::uint64_t node, std::span<const std::byte> body) {
  return wait(send(opcode, node, body));
}

Reply FakeKernel::lookup(std::uint64_t parent, const std::string& name) {
  return call(FUSE_LOOKUP, parent, std::as_bytes(std::span(name.c_str(), name.size() + 1)));
}

Reply FakeKernel::read(std::uint64_t node, std::uint64_t offset, std::uint32_t size) {
  fuse_read_in in = {};
  in.offset = offset;
  in.size = size;
  return call(FUSE_READ, node, in);
}

Reply FakeKernel::walk(const std::string& path) {
  Reply reply;
  std::uint64_t node = FUSE_ROOT_ID;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    reply = lookup(node, path.substr(begin, end - begin));
    if (reply.error != 0) return reply;
    node = reply.as<fuse_entry_out>().nodeid;
    begin = end + 1;
  }
  return reply;
}

std::uint64_t FakeKernel::send(std::uint32_t opcode, std::uint64_t node,
                               std::span<const std::byte> body) {
  fuse_in_header header = {};
  header.len = static_cast<std::uint32_t>(sizeof header + body.size());
  header.opcode = opcode;
  header.unique = std::exchange(next_, next_ + 2);
  header.nodeid = node;
  header.pid = pid;
  std::vector<std::byte> message(header.len);
  std::memcpy(message.data(), &header, sizeof header);
  if (!body.empty()) std::memcpy(message.data() + sizeof header, body.data(), body.size());
  if (::write(kernel_.value(), message.data(), message.size()) < 0) {
    throw std::runtime_error("the server is gone");
  }
  sent_[header.unique] = std::move(message);
  return header.unique;
}

void FakeKernel::resend(std::uint64_t unique) {
  std::vector<std::byte> message = sent_.at(unique);
  fuse_in_header header = {};
  std::memcpy(&header, message.data(), sizeof header);
  header.unique |= kResent;
  std::memcpy(message.data(), &header, sizeof header);
  if (::write(kernel_.value(), message.data(), message.size()) < 0) {
    throw std::runtime_error("the server is gone");
  }
}

void FakeKernel::interrupt(std::uint64_t unique) {
  fuse_interrupt_in in = {};
  in.unique = unique;
  send(FUSE_INTERRUPT, 0, std::as_bytes(std::span(&in, 1)));
}

Reply FakeKernel::wait(std::uint64_t unique) {
  if (!answered(unique, kPatience)) throw std::runtime_error("no reply in time");
  auto reply = replies_.extract(unique);
  return std::move(reply.mapped());
}

bool FakeKernel::answered(std::uint64_t unique, int milliseconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (!replies_.contains(unique)) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (!receive(std::max(0, static_cast<int>(left.count())))) return false;
  }
  return true;
}

std::vector<Reply> FakeKernel::notifications(std::size_t count) {
  while (notifications_.size() < count) {
    if (!receive(kPatience)) throw std::runtime_error("no notification in time");
  }
  return notifications_;
}

bool FakeKernel::receive(int milliseconds) {
  pollfd waiting = {kernel_.value(), POLLIN, 0};
  if (::poll(&waiting, 1, milliseconds) <= 0) return false;
  buffer_.resize(kLargestReply);
  const ssize_t got = ::recv(kernel_.value(), buffer_.data(), buffer_.size(), 0);
  fuse_out_header header = {};
  if (got < static_cast<ssize_t>(sizeof header)) throw std::runtime_error("a reply without header");
  std::memcpy(&header, buffer_.data(), sizeof header);
  if (header.len != static_cast<std::size_t>(got)) throw std::runtime_error("a reply cut short");
  header.unique &= ~kResent;
  if (header.unique == 0) {
    notifications_.push_back(
        {header.error, {buffer_.begin() + sizeof header, buffer_.begin() + got}});
  } else if (sent_.contains(header.unique)) {  // others the kernel refuses with ENOENT
    Reply& reply = replies_[header.unique];
    reply.error = header.error;
    reply.payload.assign(buffer_.begin() + sizeof header, buffer_.begin() + got);
  }
  return true;
}

}  // namespace weightfs::fuse::test
