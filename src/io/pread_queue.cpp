// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "io/pread_queue.hpp"

#include <unistd.h>
#include <cerrno>

namespace weightfs::io {

void PreadQueue::submit(const Fd& fd, std::uint64_t offset, std::span<std::byte> buffer,
                        std::uint64_t tag) {
  pending_.push_back({fd.value(), offset, buffer, tag});
}

std::optional<ReadQueue::Completion> PreadQueue::wait(const std::stop_token& stop) {
  if (stop.stop_requested()) return std::nullopt;
  const Pending next = pending_.front();
  pending_.pop_front();
  const ssize_t got =
      ::pread(next.fd, next.buffer.data(), next.buffer.size(), static_cast<off_t>(next.offset));
  return Completion{next.tag, got < 0 ? -errno : static_cast<int>(got)};
}

bool PreadQueue::drain(std::chrono::milliseconds /*patience*/) noexcept {
  pending_.clear();
  return true;
}

}  // namespace weightfs::io
