// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/byte_range.hpp"
#include "io/direct_file.hpp"
#include "io/read_queue.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <stop_token>

namespace weightfs::io {

/// Takes the bytes at `offset`, valid during the call only.
using OnChunk = std::function<void(std::uint64_t offset, std::span<const std::byte>)>;

/// One range of one file, as chunks that are read ahead of each other and delivered in order.
///
/// The buffer is divided into chunks, one per read in flight; its number of chunks is the queue
/// depth. While the file is direct, reads begin and end on its alignment and the surplus is cut off
/// at delivery. All that it is given must outlive it; confined to one thread.
class ChunkedRead {
 public:
  /// `chunk` is a power of two, at least 64 KiB; `buffer` holds a whole number of them.
  ChunkedRead(ReadQueue& queue, std::span<std::byte> buffer, std::size_t chunk, DirectFile& file,
              ByteRange range);

  /// Error: StaleFileError; kChanged, the file ended before the range did; kCancelled; what the
  /// kernel said (throw_errno); what `on_chunk` throws. Everything before the failure has been
  /// delivered. Afterwards, however it ends, the caller drains the queue.
  void run(const OnChunk& on_chunk, const std::stop_token& stop);

 private:
  struct Chunk {
    std::uint64_t offset = 0;    ///< of its first byte, wanted or not
    std::size_t wanted = 0;      ///< from there to the last byte that is wanted
    std::size_t got = 0;         ///< valid bytes from `offset` on
    std::size_t asked_from = 0;  ///< where the read in flight began, from `offset` on
    bool asked_direct = false;   ///< whether the file was direct then
    bool done = false;
    bool ended = false;  ///< the file is shorter than that
    int error = 0;       ///< errno
    std::span<std::byte> buffer;
  };

  [[nodiscard]] bool more_to_start() const noexcept { return next_offset_ < range_.end; }
  void start_next(std::span<std::byte> buffer);
  void ask(Chunk& chunk, std::uint64_t tag);
  void complete(Chunk& chunk, std::uint64_t tag, int result);
  void deliver(const Chunk& chunk, const OnChunk& on_chunk) const;

  ReadQueue& queue_;
  const std::span<std::byte> buffer_;
  const std::size_t chunk_size_;
  DirectFile& file_;
  const ByteRange range_;
  std::uint64_t next_offset_;
  std::uint64_t first_tag_ = 0;  ///< of the chunk at the front: tags count up
  std::deque<Chunk> chunks_;     ///< in flight or waiting for their turn, in file order
};

}  // namespace weightfs::io
