// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/error.hpp"
#include "fetch/own_reads.hpp"
#include "fetch/part.hpp"
#include "source/source.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

namespace weightfs::fetch {

class BlobFill;

/// One ranged request on its way into a fill: puts the bytes where they belong as they come, and
/// says how it ended. Takes them no faster than the fill may (FillLimits). Buffers nothing for the
/// disk, one block for memory. Confined to one worker.
class PartRun final : public source::Sink {
 public:
  /// `fill` must outlive it.
  PartRun(BlobFill& fill, const Part& part);

  /// Neither member set: every byte came, or the fill wanted no more of them.
  struct Outcome {
    std::optional<TransientError> again;  ///< worth another try from position()
    std::optional<Error> fatal;           ///< ends the fill
  };
  [[nodiscard]] Outcome execute(std::stop_token stop);

  /// The first byte of the range that has not come.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }

  void write(std::uint64_t offset, std::span<const std::byte> data) override;
  void skipped(std::uint64_t bytes) override;

 private:
  void write_to_disk(std::span<const std::byte> data);
  void write_to_memory(std::span<const std::byte> data);
  [[noreturn]] void refuse();

  BlobFill& fill_;
  const Part part_;
  const std::uint64_t file_size_;
  std::uint64_t position_;
  std::optional<OwnReads> own_reads_;  ///< of a source that has local files
  std::uint64_t marked_;               ///< disk: every block before this one is marked as written
  std::vector<std::byte> block_;       ///< memory: the bytes of the block at position() so far
  bool refused_ = false;
};

}  // namespace weightfs::fetch
