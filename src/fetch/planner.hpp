// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/byte_range.hpp"
#include "fetch/block_states.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace weightfs::fetch {

/// Which bytes of one file to ask for next. Knows of every block (store::kBlockSize) whether it is
/// missing, in flight or written, and cuts parts out of the missing ones. A part ends on a block's
/// end and begins on a block's beginning, or behind the bytes of that block that an interrupted
/// part left; no byte is in two parts at once.
///
/// Pure: no clock, no I/O, no thread of its own. Not thread-safe.
class Planner {
 public:
  struct Options {
    std::uint64_t size = 0;  ///< of the file, bytes
    std::uint64_t part_size =
        0;                     ///< largest part, bytes; rounded down to whole blocks, at least one
    unsigned connections = 1;  ///< parts that run side by side at best
  };

  /// `written` has one flag per block; empty means that nothing is there.
  Planner(Options options, const std::vector<bool>& written);

  /// The first missing blocks of the first range of `demand` that has any. No more than the readers
  /// wait for, except where the bytes behind it are wanted anyway (`ahead`): then the part goes on
  /// into them, because a request that is made costs a round trip and its next byte costs none.
  [[nodiscard]] std::optional<ByteRange> take_demand(std::span<const ByteRange> demand,
                                                     ByteRange ahead);
  /// The lowest missing blocks of `ahead`, so that the written prefix grows without gaps and the
  /// hash can follow. Parts become smaller towards the end of the file, so that all connections
  /// finish together.
  [[nodiscard]] std::optional<ByteRange> take_ahead(ByteRange ahead);
  /// All missing blocks from the lowest on, up to the first that is not missing, however many (but
  /// no more than 1 TiB at once).
  [[nodiscard]] std::optional<ByteRange> take_run();
  /// Whether the first two would find something.
  [[nodiscard]] bool has_missing(ByteRange range) const;

  /// Blocks that lie entirely within `range` are written (the file's last may be short).
  void set_written(ByteRange range);
  /// Blocks of `range` that are in flight are missing again. Where `range` begins inside a block,
  /// the bytes before it are there and will not be asked for a second time.
  void give_back(ByteRange range);
  /// Blocks of `range` that were written are no longer there.
  void forget(ByteRange range);

  [[nodiscard]] bool is_written(ByteRange range) const;
  [[nodiscard]] bool complete() const noexcept { return written_bytes_ == size_; }
  [[nodiscard]] std::uint64_t written_bytes() const noexcept { return written_bytes_; }
  /// Length of the prefix that is written without a gap, bytes.
  [[nodiscard]] std::uint64_t frontier() const noexcept { return end_of(frontier_); }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

 private:
  using Block = BlockState;
  struct Blocks {
    std::size_t first = 0;
    std::size_t last = 0;  ///< one past
  };

  [[nodiscard]] Blocks touched(ByteRange range) const noexcept;
  [[nodiscard]] std::uint64_t end_of(std::size_t blocks) const noexcept;
  [[nodiscard]] std::optional<std::size_t> first_missing(Blocks within) const;
  [[nodiscard]] std::size_t ahead_part_blocks() const noexcept;
  ByteRange take(std::size_t first, std::size_t last);

  std::uint64_t size_;
  std::size_t part_blocks_;
  unsigned connections_;
  BlockStates blocks_;
  std::map<std::size_t, std::uint64_t>
      begun_;  ///< missing blocks of which some is there, up to where
  std::size_t missing_blocks_ = 0;
  std::uint64_t written_bytes_ = 0;
  std::size_t frontier_ = 0;    ///< every block below is written
  std::size_t no_missing_ = 0;  ///< no block below is missing: where a search may begin
};

/// The blocks that lie entirely within `range` of a file of `size` bytes, as a range; the file's
/// last block may be short.
[[nodiscard]] ByteRange whole_blocks(ByteRange range, std::uint64_t size) noexcept;

}  // namespace weightfs::fetch
