// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "io/direct_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <utility>

namespace weightfs::io {

namespace {

/// The size of a page: what every filesystem takes, and what the buffers are aligned to at least.
constexpr std::size_t kUsualAlignment = 4096;
constexpr std::size_t kLargestAlignment = 64 << 10;

/// 0 where the file cannot be read directly.
std::size_t direct_alignment(int fd) noexcept {
#ifdef STATX_DIOALIGN
  struct statx answer{};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &answer) == 0 &&
      (answer.stx_mask & STATX_DIOALIGN) != 0) {
    if (answer.stx_dio_offset_align == 0 || answer.stx_dio_offset_align > kLargestAlignment) {
      return 0;
    }
    return std::max<std::size_t>(answer.stx_dio_offset_align, kUsualAlignment);
  }
#else
  static_cast<void>(fd);
#endif
  return kUsualAlignment;
}

bool set_direct(int fd, bool wanted) noexcept {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return false;
  return ::fcntl(fd, F_SETFL, wanted ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

}  // namespace

DirectFile::DirectFile(Fd fd) : fd_(std::move(fd)) {
  const std::size_t alignment = direct_alignment(fd_.value());
  if (alignment == 0 || !set_direct(fd_.value(), true)) return;
  direct_ = true;
  alignment_ = alignment;
}

void DirectFile::fall_back_to_buffered() noexcept {
  if (std::exchange(direct_, false)) set_direct(fd_.value(), false);
}

void DirectFile::forget(std::uint64_t offset, std::uint64_t size) const noexcept {
  if (direct_) return;
  ::posix_fadvise(fd_.value(), static_cast<off_t>(offset), static_cast<off_t>(size),
                  POSIX_FADV_DONTNEED);
}

}  // namespace weightfs::io
