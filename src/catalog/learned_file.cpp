// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "catalog/learned_file.hpp"

#include "base/error.hpp"
#include "base/file.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <charconv>
#include <sstream>
#include <string>

namespace weightfs::catalog {

namespace {

constexpr std::uint64_t kMaxBytes = 1ULL << 30;

std::string content_of(const std::filesystem::path& file) {
  try {
    return read_file(file, kMaxBytes);
  } catch (const Error&) {
    return "";
  }
}

}  // namespace

void append_learned(const std::filesystem::path& file, const LearnedDigest& learned) {
  const Fd fd = open_file(file, O_WRONLY | O_CREAT | O_APPEND, 0644);
  const std::string line = std::to_string(learned.file_index) + " " + learned.sha256.hex() + "\n";
  // One write, so that a killed process leaves a whole line or none.
  const ssize_t put = ::write(fd.value(), line.data(), line.size());
  if (put < 0) throw_errno(errno, "append to " + file.string());
  if (put == static_cast<ssize_t>(line.size())) return;
  // A disk that takes less is full. What it took would spoil the next line.
  const off_t end = ::lseek(fd.value(), 0, SEEK_CUR);
  if (end >= put && ::ftruncate(fd.value(), end - put) != 0) {
    throw_errno(errno, "cut " + file.string());
  }
  throw_errno(ENOSPC, "append to " + file.string());
}

std::vector<LearnedDigest> read_learned(const std::filesystem::path& file) {
  std::vector<LearnedDigest> all;
  std::istringstream lines(content_of(file));
  for (std::string line; std::getline(lines, line);) {
    LearnedDigest learned;
    const auto [end, error] =
        std::from_chars(line.data(), line.data() + line.size(), learned.file_index);
    if (error != std::errc() || *end != ' ') continue;
    const auto digest = Digest::parse(std::string_view(end + 1, line.data() + line.size()));
    if (!digest) continue;
    learned.sha256 = *digest;
    all.push_back(learned);
  }
  return all;
}

}  // namespace weightfs::catalog
