// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/own_reads.hpp"

#include <sys/resource.h>
#include <utility>

namespace weightfs::fetch {

namespace {

/// Of ru_inblock, whatever the disk has.
constexpr std::uint64_t kSector = 512;

std::uint64_t reads_so_far() noexcept {
  rusage usage{};
  if (::getrusage(RUSAGE_THREAD, &usage) != 0) return 0;
  return static_cast<std::uint64_t>(usage.ru_inblock) * kSector;
}

}  // namespace

OwnReads::OwnReads(std::atomic<std::uint64_t>& total) noexcept
    : total_(total), before_(reads_so_far()) {
}

void OwnReads::count() noexcept {
  const std::uint64_t now = reads_so_far();
  total_ += now - std::exchange(before_, now);
}

}  // namespace weightfs::fetch
