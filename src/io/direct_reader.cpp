// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "io/direct_reader.hpp"

#include "io/aligned_buffer.hpp"
#include "io/pread_queue.hpp"
#include "io/ring.hpp"

#include <chrono>
#include <utility>

namespace weightfs::io {

namespace {

/// For reads that run into the drain after a stop: a local disk needs milliseconds.
constexpr std::chrono::milliseconds kDrainPatience{1'000};

}  // namespace

/// A queue and the memory it reads into; both live until the kernel has let go of them.
class DirectReader::Lane {
 public:
  explicit Lane(const DirectReaderOptions& options) : buffer_(options.queue_depth * options.chunk) {
    std::unique_ptr<Ring> ring;
    if (options.engine == DirectReaderOptions::Engine::kRingOrPread) {
      ring = Ring::create(options.queue_depth);
    }
    uses_ring_ = ring != nullptr;
    queue_ = ring ? std::unique_ptr<ReadQueue>(std::move(ring)) : std::make_unique<PreadQueue>();
  }

  [[nodiscard]] ReadQueue& queue() noexcept { return *queue_; }
  [[nodiscard]] AlignedBuffer& buffer() noexcept { return buffer_; }
  [[nodiscard]] bool uses_ring() const noexcept { return uses_ring_; }

 private:
  AlignedBuffer buffer_;
  std::unique_ptr<ReadQueue> queue_;
  bool uses_ring_ = false;
};

DirectReader::DirectReader(DirectReaderOptions options)
    : options_(options), lane_(std::make_unique<Lane>(options)) {
}

DirectReader::~DirectReader() = default;

void DirectReader::read(DirectFile& file, ByteRange range, const OnChunk& on_chunk,
                        const std::stop_token& stop) {
  if (!lane_) lane_ = std::make_unique<Lane>(options_);
  ChunkedRead read(lane_->queue(), lane_->buffer().span(), options_.chunk, file, range);
  try {
    read.run(on_chunk, stop);
  } catch (...) {
    // A read that the kernel cannot end will write into the buffer some day: the lane is given up
    // with its memory rather than freed under it.
    if (!lane_->queue().drain(kDrainPatience)) static_cast<void>(lane_.release());
    throw;
  }
}

void DirectReader::release_pages() noexcept {
  if (lane_) lane_->buffer().release_pages();
}

bool DirectReader::uses_ring() const noexcept {
  return lane_ && lane_->uses_ring();
}

}  // namespace weightfs::io
