// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"

#include <linux/fuse.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace weightfs::fuse::test {

/// What came back for a request: a negative errno or 0, and the payload.
struct Reply {
  std::int32_t error = 0;
  std::vector<std::byte> payload;

  template <class T>
  [[nodiscard]] T as() const {
    T value{};
    std::memcpy(&value, payload.data(), std::min(sizeof value, payload.size()));
    return value;
  }
  [[nodiscard]] std::string text() const {
    return {reinterpret_cast<const char*>(payload.data()), payload.size()};
  }
};

/// Plays the kernel on one end of a SOCK_SEQPACKET pair, so that the FUSE protocol can be tested
/// without a mount and without privileges. The other end goes to fuse::Session. Confined to one
/// thread. Every wait has a deadline; one that is missed throws.
class FakeKernel {
 public:
  FakeKernel();

  /// The server's end. May be taken again after a server died: the connection lives on.
  [[nodiscard]] Fd server_end() const { return server_.duplicate(); }

  /// The handshake of protocol 7.40 with all features of a current kernel.
  Reply init();

  /// Sends and waits for the answer.
  Reply call(std::uint32_t opcode, std::uint64_t node, std::span<const std::byte> body = {});
  template <class T>
  Reply call(std::uint32_t opcode, std::uint64_t node, const T& body) {
    return call(opcode, node, std::as_bytes(std::span(&body, 1)));
  }
  Reply lookup(std::uint64_t parent, const std::string& name);
  Reply read(std::uint64_t node, std::uint64_t offset, std::uint32_t size);
  /// Walks a path from the root; the error of the first component that fails.
  Reply walk(const std::string& path);

  /// Sends only; returns the unique number to wait for.
  std::uint64_t send(std::uint32_t opcode, std::uint64_t node,
                     std::span<const std::byte> body = {});
  template <class T>
  std::uint64_t send(std::uint32_t opcode, std::uint64_t node, const T& body) {
    return send(opcode, node, std::as_bytes(std::span(&body, 1)));
  }
  /// Sends a request of an earlier send() again, as after FUSE_NOTIFY_RESEND.
  void resend(std::uint64_t unique);
  void interrupt(std::uint64_t unique);
  Reply wait(std::uint64_t unique);
  /// Whether an answer arrives within `milliseconds`.
  bool answered(std::uint64_t unique, int milliseconds);

  /// The notifications that came so far, in order, each with its code (FUSE_NOTIFY_*) as error;
  /// waits for `count` of them.
  std::vector<Reply> notifications(std::size_t count);
  std::uint32_t pid = 1;  ///< sent as the caller

 private:
  /// Receives one message; false when none comes in time.
  bool receive(int milliseconds);

  Fd kernel_;
  Fd server_;
  std::uint64_t next_ = 2;
  std::map<std::uint64_t, std::vector<std::byte>> sent_;
  std::map<std::uint64_t, Reply> replies_;
  std::vector<Reply> notifications_;
  std::vector<std::byte> buffer_;  ///< of receive()
};

}  // namespace weightfs::fuse::test
