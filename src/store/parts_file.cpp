// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/parts_file.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "store/little_endian.hpp"
#include "store/partial_blob.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>

namespace weightfs::store {

namespace {

// magic, version, part size, blob size, blob digest; then the midstates; then the sha256 of all
// that.
constexpr std::string_view kMagic = "wfsparts";
constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kHeader = 56;
constexpr std::size_t kWord = Digest::kSize;
/// The parts of the largest file: 2^63 bytes would need more, but no disk has them.
constexpr std::uint64_t kMaxPartsBytes = 1ULL << 30;

std::string_view as_text(const Digest::Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Digest::Bytes word_at(std::string_view content, std::size_t at) {
  Digest::Bytes bytes;
  std::transform(content.begin() + static_cast<std::ptrdiff_t>(at),
                 content.begin() + static_cast<std::ptrdiff_t>(at + kWord), bytes.begin(),
                 [](char c) { return static_cast<std::uint8_t>(c); });
  return bytes;
}

}  // namespace

std::size_t midstate_count(std::uint64_t size) noexcept {
  return size == 0 ? 0 : static_cast<std::size_t>((size - 1) / kPartSize);
}

std::optional<PartsFile> read_parts(const std::filesystem::path& path) {
  std::string content;
  try {
    content = read_file(path, kMaxPartsBytes);
  } catch (const Error&) {
    return std::nullopt;  // an unreadable sector included: it is computed again from the blob
  }
  const std::string_view text = content;
  if (text.size() < kHeader + kWord || !text.starts_with(kMagic)) return std::nullopt;
  const std::string_view body = text.substr(0, text.size() - kWord);
  if (text.substr(body.size()) != as_text(Digest::of(body).bytes())) return std::nullopt;
  if (read_little_endian(text, 8, 4) != kVersion || read_little_endian(text, 12, 4) != kPartSize) {
    return std::nullopt;
  }
  PartsFile parts{.digest = Digest(word_at(text, 24)), .size = read_little_endian(text, 16, 8)};
  const std::size_t count = midstate_count(parts.size);
  if (body.size() != kHeader + count * kWord) return std::nullopt;
  parts.midstates.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    parts.midstates.push_back(word_at(text, kHeader + i * kWord));
  }
  return parts;
}

void write_parts(const std::filesystem::path& path, const Digest& digest, std::uint64_t size,
                 std::span<const Midstate> midstates) {
  std::string content(kMagic);
  append_little_endian(content, kVersion, 4);
  append_little_endian(content, kPartSize, 4);
  append_little_endian(content, size, 8);
  content += as_text(digest.bytes());
  for (const Midstate& midstate : midstates) content += as_text(midstate);
  content += as_text(Digest::of(content).bytes());

  // One that is there is read-only: made anew rather than written over.
  ::unlink(path.c_str());
  const Fd fd = open_file(path, O_WRONLY | O_CREAT | O_EXCL, 0444);
  write_at(fd, 0, std::as_bytes(std::span(content)));
  if (::fdatasync(fd.value()) != 0) throw_errno(errno, "sync " + path.string());
}

}  // namespace weightfs::store
