// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/disk_reads.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>

namespace weightfs::fetch {

namespace {

/// Of the counter, whatever the disk has.
constexpr std::uint64_t kSector = 512;
/// "read I/Os, read merges, read sectors, ..."
constexpr int kReadSectors = 2;

std::optional<std::uint64_t> field(std::string_view text, int number) noexcept {
  for (;; --number) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const std::size_t end = std::min(text.find(' '), text.size());
    if (number == 0) {
      std::uint64_t value = 0;
      const auto [stop, error] = std::from_chars(text.data(), text.data() + end, value);
      if (error != std::errc{} || stop == text.data()) return std::nullopt;
      return value;
    }
    if (end == text.size()) return std::nullopt;
    text.remove_prefix(end);
  }
}

}  // namespace

void DiskReads::find_missing() {
  std::erase_if(missing_, [&](const std::filesystem::path& directory) {
    struct stat status{};
    if (::stat(directory.c_str(), &status) != 0) return false;
    if (counts_.contains(status.st_dev)) return true;
    const std::string path =
        fmt::format("/sys/dev/block/{}:{}/stat", major(status.st_dev), minor(status.st_dev));
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd >= 0) counts_.emplace(status.st_dev, Fd(fd));
    return true;
  });
}

std::optional<std::uint64_t> DiskReads::bytes() {
  if (!missing_.empty()) find_missing();
  std::optional<std::uint64_t> sum;
  for (const auto& [device, count] : counts_) {
    std::array<char, 512> text{};
    const ssize_t length = ::pread(count.value(), text.data(), text.size(), 0);
    if (length <= 0) continue;
    const auto sectors = field({text.data(), static_cast<std::size_t>(length)}, kReadSectors);
    if (sectors) sum = sum.value_or(0) + *sectors * kSector;
  }
  return sum;
}

}  // namespace weightfs::fetch
