// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/guarded_sink.hpp"

#include "base/error.hpp"

namespace weightfs::source {

void GuardedSink::write(std::uint64_t offset, std::span<const std::byte> data) {
  const ByteRange wanted = rest_.intersect({offset, offset + data.size()});
  if (wanted.empty()) return;
  if (wanted.begin != rest_.begin) throw Error(Errc::kInternal, "a source left out bytes");
  try {
    sink_.write(wanted.begin, data.subspan(wanted.begin - offset, wanted.size()));
  } catch (...) {
    failed_ = true;
    throw;
  }
  rest_.begin = wanted.end;
}

}  // namespace weightfs::source
