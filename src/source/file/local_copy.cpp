// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/file/local_copy.hpp"

#include "base/error.hpp"
#include "io/direct_file.hpp"
#include "snapshot/byte_text.hpp"

#include <utility>

namespace weightfs::source {

LocalCopy::LocalCopy(Copy copy, SourcePtr origin, std::function<bool()> is_needed)
    : copy_(std::move(copy)), origin_(std::move(origin)), is_needed_(std::move(is_needed)) {
}

snapshot::Snapshot LocalCopy::resolve(std::stop_token stop) {
  return origin_->resolve(std::move(stop));
}

void LocalCopy::read(const snapshot::File& file, ByteRange range, Sink& sink,
                     std::stop_token stop) {
  if (!is_copied(file)) return origin_->read(file, range, sink, std::move(stop));
  GuardedSink guarded(sink, range);
  std::string why = "it has changed";
  if (!changed_) {
    try {
      return read_copy(guarded, stop);
    } catch (const Error& error) {
      if (guarded.failed() || error.code() == Errc::kCancelled) throw;
      changed_ = true;
      why = error.what();
    }
  }
  if (!is_needed_()) throw Error(Errc::kChanged, describe() + ": " + why);
  origin_->read(file, guarded.rest(), sink, std::move(stop));
}

void LocalCopy::read_copy(GuardedSink& sink, const std::stop_token& stop) {
  opened_ = true;
  io::DirectFile file(copy_.tree->open(copy_.file));
  const auto reader = copy_.tree->readers().take();
  reader->read(
      file, sink.rest(),
      [&](std::uint64_t offset, std::span<const std::byte> data) {
        LocalTree::check_version(copy_.file, file.fd());
        bytes_read_ += data.size();
        sink.write(offset, data);
      },
      stop);
}

void LocalCopy::begin_afresh(const snapshot::File& file) {
  origin_->begin_afresh(file);
}

void LocalCopy::refute(const snapshot::File& file) {
  // Nothing of it was the other source's, else.
  if (!is_copied(file) || changed_) origin_->refute(file);
}

bool LocalCopy::has_others(const snapshot::File& file) const {
  return (!is_copied(file) || changed_) && origin_->has_others(file);
}

bool LocalCopy::serves_ranges() const noexcept {
  return !changed_ || origin_->serves_ranges();
}

std::optional<Fd> LocalCopy::open_local(const snapshot::File& file) {
  if (!is_copied(file)) return origin_->open_local(file);
  if (changed_) return std::nullopt;
  opened_ = true;
  return copy_.tree->open(copy_.file);
}

std::string LocalCopy::describe() const {
  return snapshot::printable(copy_.tree->full_path(copy_.file.path));
}

}  // namespace weightfs::source
