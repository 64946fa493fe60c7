// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/byte_range.hpp"
#include "io/chunked_read.hpp"
#include "io/direct_file.hpp"

#include <cstddef>
#include <memory>
#include <stop_token>

namespace weightfs::io {

struct DirectReaderOptions {
  enum class Engine { kRingOrPread, kPread };
  unsigned queue_depth = 8;     ///< reads in flight
  std::size_t chunk = 1 << 20;  ///< bytes of each; a power of two, at least 64 KiB
  Engine engine = Engine::kRingOrPread;
};

/// Reads ranges of files: several reads in flight through io_uring, past the page cache where the
/// filesystem takes that; with pread where there is no io_uring.
///
/// Owns its ring and queue_depth * chunk bytes of buffer, to be used again for the next range.
/// Confined to one thread at a time.
class DirectReader {
 public:
  explicit DirectReader(DirectReaderOptions options);
  DirectReader(const DirectReader&) = delete;
  DirectReader& operator=(const DirectReader&) = delete;
  ~DirectReader();

  /// `range` of `file` to `on_chunk`, in order. Throws as ChunkedRead::run does. A stop ends it
  /// within about a second even while the kernel is stuck in a read.
  void read(DirectFile& file, ByteRange range, const OnChunk& on_chunk,
            const std::stop_token& stop);

  /// Gives the buffer's pages back until the next read.
  void release_pages() noexcept;
  /// Whether reads go through io_uring.
  [[nodiscard]] bool uses_ring() const noexcept;

 private:
  class Lane;
  const DirectReaderOptions options_;
  std::unique_ptr<Lane> lane_;
};

}  // namespace weightfs::io
