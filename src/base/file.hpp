// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace weightfs {

/// Opens with O_CLOEXEC added. Throws Error (kNotFound, kPermission, kIo).
[[nodiscard]] Fd open_file(const std::filesystem::path& path, int flags, unsigned mode = 0);

/// The whole content; kInvalid if it is larger than `limit` bytes.
[[nodiscard]] std::string read_file(const std::filesystem::path& path, std::uint64_t limit);

/// Replaces `path` in one step and makes it durable: temporary file beside it, fdatasync, rename,
/// fsync of the directory (design: data before name). Readers see the old or the new content, never
/// a mix.
void write_file_durably(const std::filesystem::path& path, std::string_view content,
                        unsigned mode = 0644);

/// fsync of a directory, so that renames and unlinks in it survive a power cut.
void sync_directory(const std::filesystem::path& directory);

/// Reads until `buffer` is full or the file ends; returns the bytes read. Retries EINTR and short
/// reads.
std::size_t read_at(const Fd& fd, std::uint64_t offset, std::span<std::byte> buffer);

/// Writes all of `data`; a full disk is Errc::kNoSpace.
void write_at(const Fd& fd, std::uint64_t offset, std::span<const std::byte> data);

}  // namespace weightfs
