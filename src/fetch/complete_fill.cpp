// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/complete_fill.hpp"

#include "base/file.hpp"
#include "fetch/read_buffer.hpp"

#include <algorithm>
#include <utility>

namespace weightfs::fetch {

CompleteFill::CompleteFill(Target target, store::Blob blob)
    : target_(std::move(target)), blob_(std::move(blob)) {
}

ReadId CompleteFill::read(std::uint64_t offset, std::uint64_t size, ReadDone done) {
  const std::uint64_t begin = std::min(offset, blob_.size);
  ReadBuffer buffer(static_cast<std::size_t>(std::min(size, blob_.size - begin)));
  std::optional<Error> error;
  try {
    if (read_at(*blob_.fd, begin, buffer.bytes()) != buffer.bytes().size()) {
      throw Error(Errc::kIo, target_.file().path + ": the blob is shorter than it should be");
    }
  } catch (const Error& failure) {
    error = failure;
  }
  done({.data = error ? std::span<const std::byte>() : buffer.bytes(), .error = error});
  return 0;
}

FillProgress CompleteFill::progress() const {
  return {.state = FillState::kComplete,
          .size = blob_.size,
          .written = blob_.size,
          .frontier = blob_.size,
          .hashed = blob_.size};
}

}  // namespace weightfs::fetch
