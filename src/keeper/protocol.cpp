// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "keeper/protocol.hpp"

#include <sys/socket.h>
#include <cerrno>
#include <cstring>

namespace weightfs::keeper {

namespace {

/// Room for the descriptors of one message, aligned as cmsg(3) wants it.
union Control {
  cmsghdr aligned;
  char bytes[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
};

void take_descriptors(msghdr& header, std::vector<Fd>& descriptors) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
      descriptors.emplace_back(fd);
    }
  }
}

}  // namespace

bool send_message(int socket, std::span<const std::byte> message,
                  std::span<const int> descriptors) {
  iovec part{const_cast<std::byte*>(message.data()), message.size()};
  Control control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    header.msg_control = control.bytes;
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  ssize_t sent = -1;
  do {
    sent = ::sendmsg(socket, &header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(message.size());
}

Received receive_message(int socket, std::span<std::byte> message, std::vector<Fd>& descriptors) {
  iovec part{message.data(), message.size()};
  Control control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes;
  header.msg_controllen = sizeof control.bytes;
  ssize_t got = -1;
  do {
    got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    return errno == EAGAIN || errno == EWOULDBLOCK ? Received::kNothing : Received::kClosed;
  }
  descriptors.clear();
  take_descriptors(header, descriptors);
  if (got == static_cast<ssize_t>(message.size()) &&
      (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0) {
    return Received::kMessage;
  }
  descriptors.clear();
  return Received::kClosed;
}

Peeked peek_message(int socket, std::span<std::byte> message) {
  iovec part{message.data(), message.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  ssize_t got = -1;
  do {
    got = ::recvmsg(socket, &header, MSG_PEEK);
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    return {errno == EAGAIN || errno == EWOULDBLOCK ? Received::kNothing : Received::kClosed};
  }
  if (got != static_cast<ssize_t>(message.size()) || (header.msg_flags & MSG_TRUNC) != 0) {
    return {Received::kClosed};
  }
  const bool attached = (header.msg_flags & MSG_CTRUNC) != 0;  // there was no room for any
  return {Received::kMessage, attached ? Attached::kDescriptors : Attached::kNothing};
}

void drop_message(int socket) {
  while (::recv(socket, nullptr, 0, 0) < 0 && errno == EINTR) {
  }
}

int take_descriptor(int socket) noexcept {
  Request ignored;
  iovec part{&ignored, sizeof ignored};
  Control control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes;
  header.msg_controllen = CMSG_LEN(sizeof(int));  // not CMSG_SPACE, in which two fit
  ssize_t got = -1;
  do {
    got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  const cmsghdr* rights = got < 0 ? nullptr : CMSG_FIRSTHDR(&header);
  if (rights == nullptr || rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS) {
    return -1;
  }
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(rights), sizeof descriptor);
  return (header.msg_flags & MSG_CTRUNC) == 0 ? descriptor : -1;
}

int to_errno(Errc code) noexcept {
  switch (code) {
    case Errc::kInvalid:
      return EINVAL;
    case Errc::kNotFound:
      return ENOENT;
    case Errc::kPermission:
      return EPERM;
    case Errc::kTimedOut:
      return ETIMEDOUT;
    case Errc::kNoSpace:
      return ENOSPC;
    case Errc::kBusy:
      return EBUSY;
    case Errc::kUnsupported:
      return EOPNOTSUPP;
    case Errc::kUnavailable:
    case Errc::kChanged:
    case Errc::kCorrupt:
    case Errc::kIo:
    case Errc::kNotReady:
    case Errc::kCancelled:
    case Errc::kInternal:
      return EIO;
  }
  return EIO;
}

Errc from_errno(int value) noexcept {
  switch (value) {
    case EINVAL:
      return Errc::kInvalid;
    case ENOENT:
      return Errc::kNotFound;
    case EPERM:
      return Errc::kPermission;
    case ETIMEDOUT:
      return Errc::kTimedOut;
    case ENOSPC:
      return Errc::kNoSpace;
    case EBUSY:
      return Errc::kBusy;
    case EOPNOTSUPP:
      return Errc::kUnsupported;
    default:
      return Errc::kIo;
  }
}

}  // namespace weightfs::keeper
