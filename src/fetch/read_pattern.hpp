// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/byte_range.hpp"
#include "snapshot/file.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace weightfs::fetch {

/// What the reads of one file say about the bytes that will be read next.
///
/// What counts is how many different blocks were asked for, by whomever: an indexer that opens the
/// same header a hundred times has read one header. The thresholds must lie above what reading a
/// header can look like: through mmap and a read-ahead of 4 MiB, one touched byte is 4 MiB of
/// READs, and a header that reaches into the last quarter of that window is 8 MiB.
///
/// Pure. Not thread-safe.
class ReadPattern {
 public:
  struct Options {
    std::uint64_t file_ahead_after = 0;      ///< bytes
    std::uint64_t snapshot_ahead_after = 0;  ///< bytes
  };

  ReadPattern(const snapshot::File& file, Options options);

  void on_read(ByteRange range);
  /// Other readers will come.
  void forget();

  /// Somebody reads this file as a whole, in whatever order.
  [[nodiscard]] bool wants_file() const noexcept { return demanded_ >= options_.file_ahead_after; }
  /// Somebody loads weights: a file of weights is being read as a whole, and of it either a lot or
  /// a large share was asked for.
  [[nodiscard]] bool is_loader() const noexcept;
  /// What the latest reader is about to ask for, where it reads front to back; else empty. For
  /// fills that cannot keep the whole file.
  [[nodiscard]] ByteRange next_bytes(std::uint64_t window) const noexcept;

 private:
  /// One front-to-back run of reads. Several readers share a file, each with its own.
  struct Run {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t last_used = 0;
  };
  void follow_runs(ByteRange range);

  std::uint64_t size_;
  bool weights_;
  Options options_;
  std::vector<bool> blocks_;  ///< asked for at least once
  std::uint64_t demanded_ = 0;
  std::array<Run, 8> runs_;
  std::size_t current_ = 0;
  std::uint64_t reads_ = 0;
};

/// By its extension, or by being too large for anything else.
[[nodiscard]] bool holds_weights(const snapshot::File& file) noexcept;

}  // namespace weightfs::fetch
