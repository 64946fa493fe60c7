// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/block_map.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "store/little_endian.hpp"
#include "store/unreadable.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <bit>
#include <cerrno>
#include <span>
#include <utility>

namespace weightfs::store {

namespace {

// magic, version, block size, blob size, key, boot id, sha256 of all that; then the written bits,
// then the durable bits.
constexpr std::string_view kMagic = "wfs map\n";
constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kChecksumAt = 96;
constexpr std::size_t kHeader = kChecksumAt + Digest::kSize;
constexpr std::size_t kKeyAt = 24;
constexpr std::size_t kBootIdAt = kKeyAt + Digest::kSize;
static_assert(kBootIdAt + BlockMap::kMaxBootId == kChecksumAt);
/// The map of 8 TiB has 32 MiB.
constexpr std::uint64_t kMaxMapBytes = 1ULL << 30;

std::string_view as_text(const Digest::Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::uint64_t block_count(std::uint64_t size) noexcept {
  return size / kBlockSize + (size % kBlockSize != 0 ? 1 : 0);
}

std::size_t bitmap_bytes(std::uint64_t size) noexcept {
  return static_cast<std::size_t>((block_count(size) + 7) / 8);
}

bool has_bit(const std::vector<std::uint8_t>& bits, std::uint64_t block) noexcept {
  return (bits[block / 8] >> (block % 8) & 1) != 0;
}

std::uint64_t set_bytes(const std::vector<std::uint8_t>& bits, std::uint64_t size) noexcept {
  std::uint64_t blocks = 0;
  for (const std::uint8_t byte : bits) blocks += static_cast<std::uint64_t>(std::popcount(byte));
  std::uint64_t bytes = blocks * kBlockSize;
  const std::uint64_t tail = size % kBlockSize;
  if (tail != 0 && has_bit(bits, block_count(size) - 1)) bytes -= kBlockSize - tail;
  return bytes;
}

/// Bits past the last block have no meaning; a damaged map must not count them.
void clear_beyond_end(std::vector<std::uint8_t>& bits, std::uint64_t size) noexcept {
  const std::uint64_t used = block_count(size) % 8;
  if (used != 0) bits.back() &= static_cast<std::uint8_t>((1U << used) - 1);
}

std::string encode_header(const BlockMap::Target& target, std::uint64_t size) {
  std::string header(kMagic);
  append_little_endian(header, kVersion, 4);
  append_little_endian(header, kBlockSize, 4);
  append_little_endian(header, size, 8);
  header += as_text(target.key.bytes());
  header += target.boot_id.substr(0, BlockMap::kMaxBootId);
  header.resize(kChecksumAt);
  header += as_text(Digest::of(header).bytes());
  return header;
}

void store_header(const Fd& fd, const BlockMap::Target& target, std::uint64_t size) {
  const std::string header = encode_header(target, size);
  write_at(fd, 0, std::as_bytes(std::span(header)));
}

}  // namespace

struct BlockMap::Image {
  std::uint64_t size = 0;
  bool same_boot = false;
  Bits written;
  Bits durable;

  [[nodiscard]] const Bits& believed() const noexcept { return same_boot ? written : durable; }
};

Fd BlockMap::open_existing(const std::filesystem::path& path, int flags) {
  Fd fd(::open(path.c_str(), flags | O_CLOEXEC));
  if (!fd && errno != ENOENT && !is_unreadable(errno)) throw_errno(errno, "open " + path.string());
  return fd;
}

std::optional<BlockMap::Image> BlockMap::read_image(const Fd& fd, const Target& target) {
  try {
    return parse_image(fd, target);
  } catch (const Error&) {
    return std::nullopt;  // a sector that cannot be read
  }
}

std::optional<BlockMap::Image> BlockMap::parse_image(const Fd& fd, const Target& target) {
  std::string header(kHeader, '\0');
  if (read_at(fd, 0, std::as_writable_bytes(std::span(header))) != kHeader) return std::nullopt;
  const std::string_view text = header;
  if (!text.starts_with(kMagic) || read_little_endian(text, 8, 4) != kVersion ||
      read_little_endian(text, 12, 4) != kBlockSize ||
      text.substr(kChecksumAt) != as_text(Digest::of(text.substr(0, kChecksumAt)).bytes()) ||
      text.substr(kKeyAt, Digest::kSize) != as_text(target.key.bytes())) {
    return std::nullopt;
  }
  Image image{.size = read_little_endian(text, 16, 8)};
  const std::size_t bytes = bitmap_bytes(image.size);
  if (bytes > kMaxMapBytes) return std::nullopt;
  std::string_view boot_id = text.substr(kBootIdAt, kMaxBootId);
  boot_id = boot_id.substr(0, boot_id.find('\0'));
  image.same_boot = !boot_id.empty() && boot_id == target.boot_id;

  image.written.resize(bytes);
  image.durable.resize(bytes);
  if (read_at(fd, kHeader, std::as_writable_bytes(std::span(image.written))) != bytes ||
      read_at(fd, kHeader + bytes, std::as_writable_bytes(std::span(image.durable))) != bytes) {
    return std::nullopt;
  }
  clear_beyond_end(image.written, image.size);
  clear_beyond_end(image.durable, image.size);
  return image;
}

BlockMap::BlockMap(Fd fd, const Target& target, std::uint64_t size, Blocks blocks)
    : fd_(std::move(fd)),
      size_(size),
      path_(target.path),
      writer_(Writer{&fd_}),
      blocks_(std::move(blocks)) {
}

std::unique_ptr<BlockMap> BlockMap::create(const Target& target) {
  Blocks blocks;
  blocks.written.resize(bitmap_bytes(target.size));
  blocks.durable.resize(blocks.written.size());

  Fd fd = open_file(target.path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  store_header(fd, target, target.size);
  // Zeros in full, not a hole: a later bit must not fail for want of space.
  const Bits zeros(2 * blocks.written.size());
  write_at(fd, kHeader, std::as_bytes(std::span(zeros)));
  return std::unique_ptr<BlockMap>(
      new BlockMap(std::move(fd), target, target.size, std::move(blocks)));
}

std::unique_ptr<BlockMap> BlockMap::load(const Target& target) {
  Fd fd = open_existing(target.path, O_RDWR);
  if (!fd) return nullptr;
  std::optional<Image> image = read_image(fd, target);
  if (!image) return nullptr;
  Blocks blocks{.written = image->believed(), .durable = std::move(image->durable)};
  blocks.written_bytes = set_bytes(blocks.written, image->size);
  if (!image->same_boot) {
    // Bits first, then the boot that vouches for them: a kill between the two leaves a map of the
    // other boot, of which only durable bits are believed.
    write_at(fd, kHeader, std::as_bytes(std::span(blocks.written)));
    store_header(fd, target, image->size);
  }
  return std::unique_ptr<BlockMap>(
      new BlockMap(std::move(fd), target, image->size, std::move(blocks)));
}

std::optional<BlockMap::Summary> BlockMap::peek(const Target& target) {
  const Fd fd = open_existing(target.path, O_RDONLY);
  if (!fd) return std::nullopt;
  const std::optional<Image> image = read_image(fd, target);
  if (!image) return std::nullopt;
  return Summary{.size = image->size, .believed_bytes = set_bytes(image->believed(), image->size)};
}

std::uint64_t BlockMap::written_bytes() const {
  return blocks_.with([](const Blocks& blocks) { return blocks.written_bytes; });
}

std::vector<bool> BlockMap::written_blocks() const {
  std::vector<bool> flags(block_count(size_));
  blocks_.with([&](const Blocks& blocks) {
    for (std::size_t block = 0; block < flags.size(); ++block) {
      flags[block] = has_bit(blocks.written, block);
    }
  });
  return flags;
}

std::uint64_t BlockMap::bytes_of_block(std::uint64_t block) const noexcept {
  return std::min(kBlockSize, size_ - block * kBlockSize);
}

void BlockMap::Writer::store(std::uint64_t offset, const Bits& bits) const {
  write_at(*fd, offset, std::as_bytes(std::span(bits)));
}

void BlockMap::set_written(ByteRange range) {
  if (range.end > size_) throw Error(Errc::kInternal, "a range past the end of a partial blob");
  const std::uint64_t begin = range.begin / kBlockSize + (range.begin % kBlockSize != 0 ? 1 : 0);
  const std::uint64_t end = range.end == size_ ? block_count(size_) : range.end / kBlockSize;
  if (begin >= end) return;

  auto writer = writer_.lock();
  const std::size_t first_byte = begin / 8;
  const std::size_t last_byte = (end - 1) / 8;
  Bits changed;
  blocks_.with([&](Blocks& blocks) {
    for (std::uint64_t block = begin; block < end; ++block) {
      if (has_bit(blocks.written, block)) continue;
      blocks.written[block / 8] |= static_cast<std::uint8_t>(1U << (block % 8));
      blocks.written_bytes += bytes_of_block(block);
    }
    changed.assign(blocks.written.begin() + static_cast<std::ptrdiff_t>(first_byte),
                   blocks.written.begin() + static_cast<std::ptrdiff_t>(last_byte + 1));
  });
  // Whether they are news or not: the disk may have been too full for them the last time.
  writer->store(kHeader + first_byte, changed);
}

void BlockMap::checkpoint(const Fd& data) {
  const Bits flushed = blocks_.with([](const Blocks& blocks) { return blocks.written; });
  if (::fdatasync(data.value()) != 0) {
    const int error = errno;
    distrust();
    throw_errno(error, "flush the data beside " + path_.string());
  }
  if (!store_durable(flushed)) return;
  if (::fdatasync(fd_.value()) != 0) throw_errno(errno, "flush " + path_.string());
  blocks_.with([](Blocks& blocks) { blocks.durable_unsynced = false; });
}

bool BlockMap::store_durable(const Bits& flushed) {
  auto writer = writer_.lock();
  std::size_t first = 0;
  Bits changed;
  blocks_.with([&](Blocks& blocks) {
    std::size_t end = 0;
    first = blocks.durable.size();
    for (std::size_t at = 0; at < flushed.size(); ++at) {
      if ((flushed[at] & ~blocks.durable[at]) == 0 && !blocks.durable_unsynced) continue;
      blocks.durable[at] |= flushed[at];
      first = std::min(first, at);
      end = at + 1;
    }
    if (end == 0) return;
    // Stays set if the store or the flush fails, so that the next checkpoint stores them all again.
    blocks.durable_unsynced = true;
    changed.assign(blocks.durable.begin() + static_cast<std::ptrdiff_t>(first),
                   blocks.durable.begin() + static_cast<std::ptrdiff_t>(end));
  });
  if (changed.empty()) return false;
  writer->store(kHeader + bitmap_bytes(size_) + first, changed);
  return true;
}

bool BlockMap::distrusted() const {
  return blocks_.with([](const Blocks& blocks) { return blocks.distrusted; });
}

void BlockMap::distrust() {
  auto writer = writer_.lock();
  const Bits durable = blocks_.with([&](Blocks& blocks) {
    blocks.distrusted = true;
    blocks.written = blocks.durable;
    blocks.written_bytes = set_bytes(blocks.written, size_);
    return blocks.durable;
  });
  try {
    writer->store(kHeader, durable);
  } catch (const Error&) {
    // The disk fails; the caller is about to be told so. The digest is checked in any case.
  }
}

}  // namespace weightfs::store
