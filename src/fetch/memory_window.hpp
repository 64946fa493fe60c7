// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace weightfs::fetch {

/// The bytes of one block in memory. Whoever has it keeps it, whatever the window drops.
using BlockBytes = std::shared_ptr<const std::vector<std::byte>>;

/// The bounded memory that fills share when their bytes go past the disk: the most recently used
/// blocks of all of them. Thread-safe; takes no other lock.
class MemoryWindow {
 public:
  /// `capacity` in bytes, exceeded by no more than a block for each thread that is inserting.
  /// Blocks that readers still hold count, so what is kept for later gives way to what is being
  /// read now.
  explicit MemoryWindow(std::uint64_t capacity);
  MemoryWindow(const MemoryWindow&) = delete;
  MemoryWindow& operator=(const MemoryWindow&) = delete;

  /// One fill's blocks; drops them at its end. Thread-safe. The window must outlive it.
  class Stream {
   public:
    explicit Stream(MemoryWindow& window);
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    ~Stream();

    BlockBytes insert(std::uint64_t block, std::vector<std::byte> bytes);
    /// Null where the block is not there (any more).
    [[nodiscard]] BlockBytes find(std::uint64_t block);
    /// What this fill's readers may hold at a time, bytes: the capacity over the number of streams.
    [[nodiscard]] std::uint64_t share() const;

   private:
    MemoryWindow& window_;
    std::uint64_t id_;
  };

  /// Bytes of blocks that exist, kept or held.
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // stream, block
  struct Entry {
    Key key;
    BlockBytes bytes;
  };
  struct State {
    std::list<Entry> recent;  ///< most recently used first
    std::map<Key, std::list<Entry>::iterator> entries;
    std::uint64_t streams = 0;
    std::uint64_t last_stream = 0;
  };
  class Live;

  const std::uint64_t capacity_;
  const std::shared_ptr<Live> live_;
  Synchronized<State> state_;
};

}  // namespace weightfs::fetch
