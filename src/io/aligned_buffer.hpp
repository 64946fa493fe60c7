// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <cstddef>
#include <span>

namespace weightfs::io {

/// Memory that direct reads can go to: anonymous pages of its own, aligned to 2 MiB, so that it is
/// a few huge pages where the kernel gives them. Move-only; confined to one thread at a time.
class AlignedBuffer {
 public:
  /// `size` is rounded up to whole pages. Throws std::bad_alloc.
  explicit AlignedBuffer(std::size_t size);
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;
  ~AlignedBuffer();

  [[nodiscard]] std::span<std::byte> span() const noexcept { return {data_, size_}; }
  /// Gives the pages back to the kernel; the content is zero afterwards.
  void release_pages() noexcept;

 private:
  void* mapping_ = nullptr;
  std::size_t mapping_size_ = 0;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace weightfs::io
