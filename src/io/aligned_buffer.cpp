// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "io/aligned_buffer.hpp"

#include <sys/mman.h>
#include <cstdint>
#include <new>
#include <utility>

namespace weightfs::io {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kAlignment = 2 << 20;

std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

AlignedBuffer::AlignedBuffer(std::size_t size)
    : mapping_size_(round_up(size, kPage) + kAlignment), size_(round_up(size, kPage)) {
  mapping_ =
      ::mmap(nullptr, mapping_size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) throw std::bad_alloc();
  const auto address = reinterpret_cast<std::uintptr_t>(mapping_);
  data_ = static_cast<std::byte*>(mapping_) + (round_up(address, kAlignment) - address);
  ::madvise(data_, size_, MADV_HUGEPAGE);
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_size_(std::exchange(other.mapping_size_, 0)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {
}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_size_, other.mapping_size_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

AlignedBuffer::~AlignedBuffer() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapping_size_);
}

void AlignedBuffer::release_pages() noexcept {
  if (size_ > 0) ::madvise(data_, size_, MADV_DONTNEED);
}

}  // namespace weightfs::io
