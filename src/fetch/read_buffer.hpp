// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace weightfs::fetch {

/// Scratch space for one read, kept by the thread for its next one: no allocation per read. Nested
/// use on one thread is fine (the inner one allocates).
class ReadBuffer {
 public:
  explicit ReadBuffer(std::size_t size);
  ReadBuffer(const ReadBuffer&) = delete;
  ReadBuffer& operator=(const ReadBuffer&) = delete;
  ~ReadBuffer();

  [[nodiscard]] std::span<std::byte> bytes() noexcept { return std::span(storage_).first(size_); }

 private:
  std::vector<std::byte> storage_;
  std::size_t size_;
};

}  // namespace weightfs::fetch
