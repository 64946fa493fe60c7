// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "io/chunked_read.hpp"

#include "base/error.hpp"
#include "io/stale_file_error.hpp"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

namespace weightfs::io {

namespace {

template <class Value>
Value round_down(Value value, std::size_t multiple) {
  return value - value % multiple;
}

}  // namespace

ChunkedRead::ChunkedRead(ReadQueue& queue, std::span<std::byte> buffer, std::size_t chunk,
                         DirectFile& file, ByteRange range)
    : queue_(queue),
      buffer_(buffer),
      chunk_size_(chunk),
      file_(file),
      range_(range),
      next_offset_(round_down(range.begin, file.alignment())) {
}

void ChunkedRead::run(const OnChunk& on_chunk, const std::stop_token& stop) {
  for (std::size_t at = 0; at < buffer_.size() && more_to_start(); at += chunk_size_) {
    start_next(buffer_.subspan(at, chunk_size_));
  }
  while (!chunks_.empty()) {
    const auto completion = queue_.wait(stop);
    if (!completion) throw Error(Errc::kCancelled, "the read was cancelled");
    complete(chunks_.at(completion->tag - first_tag_), completion->tag, completion->result);
    while (!chunks_.empty() && chunks_.front().done) {
      const Chunk chunk = chunks_.front();
      deliver(chunk, on_chunk);
      chunks_.pop_front();
      ++first_tag_;
      if (more_to_start()) start_next(chunk.buffer);
    }
  }
}

void ChunkedRead::start_next(std::span<std::byte> buffer) {
  const std::uint64_t end = std::min(next_offset_ + chunk_size_, range_.end);
  chunks_.push_back({.offset = next_offset_,
                     .wanted = static_cast<std::size_t>(end - next_offset_),
                     .buffer = buffer});
  next_offset_ = end;
  ask(chunks_.back(), first_tag_ + chunks_.size() - 1);
}

void ChunkedRead::ask(Chunk& chunk, std::uint64_t tag) {
  chunk.asked_from = round_down(chunk.got, file_.alignment());
  chunk.asked_direct = file_.direct();
  // The chunk is a multiple of every alignment, so rounding up stays within its buffer.
  std::size_t end = chunk.wanted + file_.alignment() - 1;
  end = std::min(round_down(end, file_.alignment()), chunk.buffer.size());
  queue_.submit(file_.fd(), chunk.offset + chunk.asked_from,
                chunk.buffer.subspan(chunk.asked_from, end - chunk.asked_from), tag);
}

void ChunkedRead::complete(Chunk& chunk, std::uint64_t tag, int result) {
  if (result == -EINTR || result == -EAGAIN) return ask(chunk, tag);
  // As it was asked, not as the file is now: all that were in flight are refused, not the first.
  if (result == -EINVAL && chunk.asked_direct) {
    file_.fall_back_to_buffered();
    return ask(chunk, tag);
  }
  if (result < 0) {
    chunk.error = -result;
    chunk.done = true;
    return;
  }
  const std::size_t got =
      std::min(chunk.asked_from + static_cast<std::size_t>(result), chunk.wanted);
  // A direct read is asked for again from the alignment below: it is the end of the file when that
  // brings nothing new.
  chunk.ended = got < chunk.wanted && got <= chunk.got;
  chunk.got = std::max(chunk.got, got);
  chunk.done = chunk.ended || chunk.got == chunk.wanted;
  if (!chunk.done) ask(chunk, tag);
}

void ChunkedRead::deliver(const Chunk& chunk, const OnChunk& on_chunk) const {
  const std::uint64_t begin = std::max(chunk.offset, range_.begin);
  const std::uint64_t end = chunk.offset + chunk.got;
  if (begin < end) {
    on_chunk(begin, chunk.buffer.subspan(begin - chunk.offset, end - begin));
    // From the beginning: a large folio that lies across two chunks goes only as a whole.
    file_.forget(range_.begin, end - range_.begin);
  }
  if (chunk.error == ESTALE) throw StaleFileError("the file handle is stale");
  if (chunk.error != 0) throw_errno(chunk.error, "read at " + std::to_string(end));
  if (chunk.ended) {
    throw Error(Errc::kChanged, "the file ends at " + std::to_string(end) + ", before " +
                                    std::to_string(range_.end));
  }
}

}  // namespace weightfs::io
