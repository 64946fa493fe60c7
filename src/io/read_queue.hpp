// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>

namespace weightfs::io {

/// Positioned reads in flight: the kernel, as ChunkedRead sees it. Confined to one thread.
class ReadQueue {
 public:
  struct Completion {
    std::uint64_t tag = 0;  ///< as given to submit()
    int result = 0;         ///< bytes read, 0 at the end of the file, or a negated errno
  };

  virtual ~ReadQueue() = default;
  /// Starts a read. `fd` and `buffer` stay as they are until it is completed or drained. At most as
  /// many as the queue was made for.
  virtual void submit(const Fd& fd, std::uint64_t offset, std::span<std::byte> buffer,
                      std::uint64_t tag) = 0;
  /// The next completion, in any order; nullopt once `stop` is requested. Something must be in
  /// flight.
  [[nodiscard]] virtual std::optional<Completion> wait(const std::stop_token& stop) = 0;
  /// Cancels and awaits what is in flight. False if the kernel still holds buffers after `patience`
  /// (a network filesystem whose server is gone): they must never be touched or freed again.
  [[nodiscard]] virtual bool drain(std::chrono::milliseconds patience) noexcept = 0;
};

}  // namespace weightfs::io
