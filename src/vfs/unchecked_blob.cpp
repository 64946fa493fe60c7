// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "vfs/unchecked_blob.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "store/partial_blob.hpp"
#include "store/verification.hpp"

#include <algorithm>
#include <utility>

namespace weightfs::vfs {

UncheckedBlob::UncheckedBlob(store::Blob blob, std::vector<Midstate> midstates,
                             telemetry::Event subject)
    : blob_(std::move(blob)),
      midstates_(std::move(midstates)),
      subject_(std::move(subject)),
      intact_(store::part_count(blob_.size)) {
}

std::size_t UncheckedBlob::read(std::uint64_t offset, std::span<std::byte> buffer) {
  const std::uint64_t begin = std::min(offset, blob_.size);
  const std::uint64_t end = begin + std::min<std::uint64_t>(buffer.size(), blob_.size - begin);
  for (std::uint64_t part = begin / store::kPartSize; part * store::kPartSize < end; ++part) {
    if (check(part)) continue;
    throw Error(Errc::kCorrupt, "the blob " + blob_.digest.short_hex() + " was damaged on disk");
  }
  return read_at(*blob_.fd, begin, buffer.first(end - begin));
}

bool UncheckedBlob::check_all(const std::stop_token& stop) {
  for (std::size_t part = 0; part < intact_.size(); ++part) {
    if (stop.stop_requested() || !check(part)) return false;
  }
  return true;
}

bool UncheckedBlob::check(std::size_t part) {
  if (intact_[part]) return true;
  try {
    if (!store::check_part(blob_, part, midstates_)) return false;
  } catch (const Error&) {
    return false;  // a sector that cannot be read is a fault like any other
  }
  intact_[part] = true;
  return true;
}

}  // namespace weightfs::vfs
