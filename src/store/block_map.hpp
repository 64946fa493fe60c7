// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/byte_range.hpp"
#include "base/fd.hpp"
#include "base/synchronized.hpp"
#include "store/partial_blob.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weightfs::store {

/// `partial/<key>/map` (FORMAT.md): which blocks of a partial blob are there.
///
/// Two bits per block. *Written* is set once the data is in the page cache, and reaches the map's
/// own page cache before set_written() returns: it outlives the process, not the machine. *Durable*
/// is set after the data was flushed. The map says in which boot it was written; in another one
/// only durable bits are believed.
///
/// Thread-safe.
class BlockMap {
 public:
  struct Target {
    std::filesystem::path path;
    PartialKey key;
    std::uint64_t size = 0;  ///< of the blob, bytes
    std::string boot_id;     ///< at most kMaxBootId bytes; an empty one equals no other
  };
  static constexpr std::size_t kMaxBootId = 40;

  /// A new map with no block written. Throws Error.
  [[nodiscard]] static std::unique_ptr<BlockMap> create(const Target& target);
  /// The map that is there, with what may be believed of it; null where there is none of this key
  /// or it is damaged or unreadable. `target.size` is not looked at: see size(). Throws Error(kIo)
  /// for what is no fault of the file (unreadable.hpp).
  [[nodiscard]] static std::unique_ptr<BlockMap> load(const Target& target);

  /// What a load() would find, without changing anything.
  struct Summary {
    std::uint64_t size = 0;
    std::uint64_t believed_bytes = 0;
  };
  [[nodiscard]] static std::optional<Summary> peek(const Target& target);

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint64_t written_bytes() const;
  [[nodiscard]] std::vector<bool> written_blocks() const;

  /// Marks the blocks that lie entirely within `range`; the last block of the file may be short.
  void set_written(ByteRange range);
  /// Flushes `data`, and then says so: data, fdatasync, durable bits, fdatasync. If the flush of
  /// the data fails, what is in the page cache can no longer be trusted (the kernel may have
  /// dropped it), so that the written bits are taken back to the durable ones before the Error goes
  /// up.
  void checkpoint(const Fd& data);
  /// Takes the written bits back to the durable ones: a flush of the data has failed.
  void distrust();
  /// Whether one has.
  [[nodiscard]] bool distrusted() const;

 private:
  using Bits = std::vector<std::uint8_t>;

  struct Blocks {
    Bits written;
    Bits durable;
    /// Durable bits were stored and not yet flushed.
    bool durable_unsynced = false;
    bool distrusted = false;
    std::uint64_t written_bytes = 0;
  };
  struct Image;

  /// The only way to the file's content: bits are merged in memory and stored under one lock, so
  /// that two neighbours in one byte cannot overwrite each other with an older value. The store is
  /// a copy of a few bytes into the page cache; flushes happen outside.
  struct Writer {
    const Fd* fd;
    void store(std::uint64_t offset, const Bits& bits) const;
  };

  BlockMap(Fd fd, const Target& target, std::uint64_t size, Blocks blocks);
  /// No descriptor where there is no file or it is unreadable.
  static Fd open_existing(const std::filesystem::path& path, int flags);
  static std::optional<Image> read_image(const Fd& fd, const Target& target);
  static std::optional<Image> parse_image(const Fd& fd, const Target& target);
  [[nodiscard]] std::uint64_t bytes_of_block(std::uint64_t block) const noexcept;
  /// Merges and stores; false if there was nothing new.
  bool store_durable(const Bits& flushed);

  const Fd fd_;
  const std::uint64_t size_;
  const std::filesystem::path path_;
  /// Lock order: writer_, blocks_.
  Synchronized<Writer> writer_;
  Synchronized<Blocks> blocks_;
};

}  // namespace weightfs::store
