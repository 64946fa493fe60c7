// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "io/read_queue.hpp"

#include <deque>

namespace weightfs::io {

/// Plain pread(2), one at a time: for kernels and containers without io_uring. A stop takes effect
/// between two reads.
class PreadQueue final : public ReadQueue {
 public:
  void submit(const Fd& fd, std::uint64_t offset, std::span<std::byte> buffer,
              std::uint64_t tag) override;
  [[nodiscard]] std::optional<Completion> wait(const std::stop_token& stop) override;
  [[nodiscard]] bool drain(std::chrono::milliseconds patience) noexcept override;

 private:
  struct Pending {
    int fd;
    std::uint64_t offset;
    std::span<std::byte> buffer;
    std::uint64_t tag;
  };
  std::deque<Pending> pending_;
};

}  // namespace weightfs::io
