// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/read_buffer.hpp"

#include <utility>

namespace weightfs::fetch {

namespace {

/// The kernel asks for 1 MiB at most; a larger one is not worth keeping on every thread.
constexpr std::size_t kKeep = 1 << 20;

std::vector<std::byte>& spare() {
  thread_local std::vector<std::byte> storage;
  return storage;
}

}  // namespace

ReadBuffer::ReadBuffer(std::size_t size) : storage_(std::move(spare())), size_(size) {
  if (storage_.size() < size) storage_.resize(size);
}

ReadBuffer::~ReadBuffer() {
  if (storage_.size() <= kKeep) spare() = std::move(storage_);
}

}  // namespace weightfs::fetch
