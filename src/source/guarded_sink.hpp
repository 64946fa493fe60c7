// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/byte_range.hpp"
#include "source/source.hpp"

#include <cstdint>
#include <span>

namespace weightfs::source {

/// One range on its way into a sink: knows how far it has come, and whether it was the sink that
/// failed (whose exception must come out of Source::read as it is). Confined to one thread; `sink`
/// must outlive it.
class GuardedSink {
 public:
  GuardedSink(Sink& sink, ByteRange range) : sink_(sink), rest_(range) {}

  /// What is still to come.
  [[nodiscard]] ByteRange rest() const noexcept { return rest_; }
  [[nodiscard]] bool done() const noexcept { return rest_.empty(); }
  [[nodiscard]] bool failed() const noexcept { return failed_; }

  /// Passes on the part of `data`, which stands at `offset` of the file, that is next to come. What
  /// lies before is dropped, and the sink told so; what lies behind is dropped; a gap is
  /// Error(kInternal).
  void write(std::uint64_t offset, std::span<const std::byte> data);
  /// What a source within this one dropped of its own accord.
  void skipped(std::uint64_t bytes);

 private:
  template <class Call>
  void tell(const Call& call);

  Sink& sink_;
  ByteRange rest_;
  bool failed_ = false;
};

}  // namespace weightfs::source
