// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/verification.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "store/partial_blob.hpp"
#include "store/parts_file.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

namespace weightfs::store {

namespace {

constexpr std::size_t kAlignment = 4096;
constexpr std::size_t kChunk = 1 << 20;
static_assert(kPartSize % kChunk == 0);

struct alignas(kAlignment) Page {
  std::byte bytes[kAlignment];
};

/// Reads a file front to back past the page cache, or through it where that cannot be had.
class DirectReader {
 public:
  explicit DirectReader(const Fd& fd) : buffered_(fd), pages_(kChunk / kAlignment) {
    // A path of its own would race with a replacement; this is the same inode for certain.
    const std::string self = fmt::format("/proc/self/fd/{}", fd.value());
    direct_ = Fd(::open(self.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  }

  /// Up to one chunk from `offset`, a multiple of the chunk; less only at the end of the file. The
  /// bytes stand until the next call. Throws Error(kIo).
  std::span<const std::byte> read(std::uint64_t offset) {
    const std::span<std::byte> buffer = std::as_writable_bytes(std::span(pages_));
    if (direct_) {
      ssize_t got = 0;
      do {
        got = ::pread(direct_.value(), buffer.data(), buffer.size(), static_cast<off_t>(offset));
      } while (got < 0 && errno == EINTR);
      const bool whole =
          got >= 0 && (static_cast<std::size_t>(got) == kChunk || at_end(offset, got));
      if (whole) return buffer.first(static_cast<std::size_t>(got));
      if (got < 0 && errno != EINVAL) throw_errno(errno, "read a blob");
      direct_.reset();  // the filesystem wants another alignment than any we know
    }
    return buffer.first(read_at(buffered_, offset, buffer));
  }

 private:
  [[nodiscard]] bool at_end(std::uint64_t offset, ssize_t got) const {
    return ::lseek(direct_.value(), 0, SEEK_END) ==
           static_cast<off_t>(offset) + static_cast<off_t>(got);
  }

  const Fd& buffered_;
  Fd direct_;
  std::vector<Page> pages_;
};

ByteRange part_range(std::uint64_t part, std::uint64_t size) noexcept {
  return {part * kPartSize, std::min(size, (part + 1) * kPartSize)};
}

}  // namespace

std::size_t part_count(std::uint64_t size) noexcept {
  return midstate_count(size) + 1;
}

bool check_part(const Blob& blob, std::size_t index, std::span<const Midstate> midstates) {
  if (index >= part_count(blob.size) || midstates.size() != midstate_count(blob.size)) {
    throw Error(Errc::kInvalid, fmt::format("no part {} with {} midstates in a blob of {} bytes",
                                            index, midstates.size(), blob.size));
  }
  const ByteRange range = part_range(index, blob.size);
  Sha256 hasher = index == 0 ? Sha256() : Sha256(midstates[index - 1], range.begin);
  std::vector<std::byte> buffer(std::min<std::uint64_t>(kChunk, range.size()));
  for (std::uint64_t offset = range.begin; offset < range.end;) {
    const std::size_t wanted = std::min<std::uint64_t>(buffer.size(), range.end - offset);
    const std::span<std::byte> chunk(buffer.data(), wanted);
    if (read_at(*blob.fd, offset, chunk) != wanted) return false;
    hasher.update(chunk);
    offset += wanted;
  }
  if (index < midstates.size()) return hasher.midstate() == midstates[index];
  return hasher.digest() == blob.digest;
}

Rehash rehash(const Blob& blob, std::span<const Midstate> expected,
              const std::function<void(std::uint64_t)>& progress) {
  Rehash result;
  DirectReader reader(*blob.fd);
  Sha256 hasher;
  std::optional<ByteRange> first_difference;
  while (hasher.length() < blob.size) {
    const std::uint64_t offset = hasher.length();
    std::span<const std::byte> chunk;
    try {
      chunk = reader.read(offset);
    } catch (const Error& error) {
      result.fault = fmt::format("unreadable at byte {}: {}", offset, error.what());
      return result;
    }
    if (chunk.empty() || chunk.size() > blob.size - offset) {
      result.fault = fmt::format("the file is {} than {} bytes",
                                 chunk.empty() ? "shorter" : "longer", blob.size);
      return result;
    }
    hasher.update(chunk);
    if (hasher.length() % kPartSize == 0 && hasher.length() < blob.size) {
      const std::size_t part = result.midstates.size();
      result.midstates.push_back(hasher.midstate());
      if (!first_difference && part < expected.size() &&
          expected[part] != result.midstates.back()) {
        first_difference = part_range(part, blob.size);
      }
    }
    if (progress) progress(chunk.size());
  }
  const Digest found = hasher.digest();
  result.intact = found == blob.digest;
  if (!result.intact) {
    if (!first_difference && !expected.empty()) {
      first_difference = part_range(expected.size(), blob.size);
    }
    const ByteRange where = first_difference.value_or(ByteRange{0, blob.size});
    result.fault = fmt::format("the sha256 is {}; the first difference is in bytes {}-{}",
                               found.hex(), where.begin, where.end);
  }
  return result;
}

}  // namespace weightfs::store
