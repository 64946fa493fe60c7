// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "io/read_queue.hpp"

#include <memory>

namespace weightfs::io {

/// An io_uring for reads. Owns the ring and an eventfd, through which a stop from another thread
/// ends a wait at once. Confined to one thread, but for that.
class Ring final : public ReadQueue {
 public:
  /// For `entries` reads at once. nullptr where the kernel does not give one: too old, switched off
  /// (kernel.io_uring_disabled), forbidden by a container's seccomp profile, or out of locked
  /// memory.
  [[nodiscard]] static std::unique_ptr<Ring> create(unsigned entries);
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  /// Nothing may be in flight.
  ~Ring() override;

  void submit(const Fd& fd, std::uint64_t offset, std::span<std::byte> buffer,
              std::uint64_t tag) override;
  [[nodiscard]] std::optional<Completion> wait(const std::stop_token& stop) override;
  [[nodiscard]] bool drain(std::chrono::milliseconds patience) noexcept override;

 private:
  class State;
  explicit Ring(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace weightfs::io
