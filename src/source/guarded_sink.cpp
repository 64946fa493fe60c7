// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/guarded_sink.hpp"

#include "base/error.hpp"

namespace weightfs::source {

void GuardedSink::write(std::uint64_t offset, std::span<const std::byte> data) {
  const ByteRange sent{offset, offset + data.size()};
  const ByteRange before = sent.intersect({0, rest_.begin});
  if (!before.empty() && !done()) tell([&] { sink_.skipped(before.size()); });
  const ByteRange wanted = rest_.intersect(sent);
  if (wanted.empty()) return;
  if (wanted.begin != rest_.begin) throw Error(Errc::kInternal, "a source left out bytes");
  tell([&] { sink_.write(wanted.begin, data.subspan(wanted.begin - offset, wanted.size())); });
  rest_.begin = wanted.end;
}

void GuardedSink::skipped(std::uint64_t bytes) {
  tell([&] { sink_.skipped(bytes); });
}

template <class Call>
void GuardedSink::tell(const Call& call) {
  try {
    call();
  } catch (...) {
    failed_ = true;
    throw;
  }
}

}  // namespace weightfs::source
