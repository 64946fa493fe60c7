// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/error.hpp"
#include "base/fd.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weightfs::keeper {

/// The words between a daemon and its keeper: one Request, then one Response, over a SOCK_SEQPACKET
/// unix socket, each exactly of its size, descriptors by SCM_RIGHTS. Both ends are on one machine,
/// but not always of one build (a keeper outlives many daemons): numbers here are never reused, and
/// errors travel as errno.
inline constexpr std::uint32_t kProtocolMagic = 0x314b'4657;  // "WFK1"
inline constexpr std::uint16_t kProtocolVersion = 1;
inline constexpr std::size_t kMaxDescriptors = 2;

enum class Operation : std::uint16_t {
  kHello = 1,         ///< answer: descriptors {/dev/fuse, session memory}, payload the mount point
  kOpenBacking = 2,   ///< with one descriptor; answer: value the backing id
  kCloseBacking = 3,  ///< value the backing id
  kListBackings = 4,  ///< value an id; answer: payload the next ids after it, as int32 in order
  kSetReadAhead = 5,  ///< value kilobytes
  kUnmount = 6,       ///< value 1: lazily if it is busy
};

struct Request {
  std::uint32_t magic = kProtocolMagic;
  std::uint16_t version = kProtocolVersion;
  Operation operation{};
  std::int64_t value = 0;
};
static_assert(sizeof(Request) == 16);

struct Response {
  std::uint32_t magic = kProtocolMagic;
  std::uint16_t version = kProtocolVersion;
  std::uint16_t unused = 0;
  std::int32_t error = 0;  ///< 0, or an errno with a sentence as the payload
  std::uint32_t size = 0;  ///< of the payload
  std::int64_t value = 0;
  std::array<char, 4096> payload{};
};
static_assert(sizeof(Response) == 24 + 4096);

/// Sends one message; false when the other side is gone or does not take it now (a socket that does
/// not block). Never raises SIGPIPE.
[[nodiscard]] bool send_message(int socket, std::span<const std::byte> message,
                                std::span<const int> descriptors = {});

/// kClosed is also what anything but a message of exactly that size with at most kMaxDescriptors is
/// taken for; descriptors that came with it are closed.
enum class Received { kMessage, kNothing, kClosed };
[[nodiscard]] Received receive_message(int socket, std::span<std::byte> message,
                                       std::vector<Fd>& descriptors);

/// The same for a process that must not own what the other side may send: closing a descriptor can
/// block for good, where it belongs to a filesystem of that side. Looks at the next message, which
/// stays, and whether descriptors came with it.
enum class Attached { kNothing, kDescriptors };
struct Peeked {
  Received received = Received::kNothing;
  Attached attached = Attached::kNothing;
};
[[nodiscard]] Peeked peek_message(int socket, std::span<std::byte> message);
/// Takes the next message off the queue, without its descriptors.
void drop_message(int socket);
/// Takes the next message off the queue for the one descriptor that comes with it, which nobody
/// owns yet; -1 if there is none, or more. Async-signal-safe.
[[nodiscard]] int take_descriptor(int socket) noexcept;

/// How an Errc travels, and what it becomes again.
[[nodiscard]] int to_errno(Errc code) noexcept;
[[nodiscard]] Errc from_errno(int value) noexcept;

}  // namespace weightfs::keeper
