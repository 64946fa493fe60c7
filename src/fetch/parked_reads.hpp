// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/byte_range.hpp"
#include "fetch/fill.hpp"
#include "fetch/memory_window.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace weightfs::fetch {

/// A read that waits for bytes.
struct ParkedRead {
  ReadId id = 0;
  ByteRange range;
  ReadDone done;
  /// Memory only: the blocks that came so far, one entry per block of `range`; empty as long as the
  /// read has not been admitted.
  std::vector<BlockBytes> held;

  /// The bytes of `range`, once all blocks are held.
  void copy_held(std::span<std::byte> out) const;
};

/// The reads of one fill that wait, oldest first. Pure bookkeeping: answers nobody. Not
/// thread-safe.
class ParkedReads {
 public:
  using Predicate = std::function<bool(ParkedRead&)>;
  /// The bytes of a block of the file by its number, null where they are not there.
  using FindBlock = std::function<BlockBytes(std::uint64_t)>;

  void add(ParkedRead read) { reads_.push_back(std::move(read)); }
  [[nodiscard]] std::optional<ParkedRead> remove(ReadId id);
  [[nodiscard]] std::vector<ParkedRead> remove_all();
  /// Takes out those for which `ready` holds.
  [[nodiscard]] std::vector<ParkedRead> remove_if(const Predicate& ready);

  /// Memory only. Lets reads hold blocks, oldest first, as long as together they ask for no more
  /// than `budget` bytes (the oldest is always let in, so that somebody gets on). Takes out those
  /// that are complete by that.
  [[nodiscard]] std::vector<ParkedRead> admit(std::uint64_t budget, const FindBlock& find);
  /// Memory only. Gives a block to all who were admitted and wait for it; takes out who is
  /// complete.
  [[nodiscard]] std::vector<ParkedRead> attach(std::uint64_t block, const BlockBytes& bytes);

  /// What is waited for, oldest first.
  [[nodiscard]] std::vector<ByteRange> ranges() const;
  /// Memory only: what those wait for that were admitted.
  [[nodiscard]] std::vector<ByteRange> admitted_ranges() const;
  [[nodiscard]] bool empty() const noexcept { return reads_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return reads_.size(); }

 private:
  std::list<ParkedRead> reads_;
};

}  // namespace weightfs::fetch
