// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/part_run.hpp"

#include "fetch/blob_fill.hpp"
#include "fetch/planner.hpp"
#include "store/partial_blob.hpp"

#include <algorithm>
#include <utility>

namespace weightfs::fetch {

namespace {

constexpr std::uint64_t kBlock = store::kBlockSize;

/// What a source may recover from without being another object. A source that reads a mounted
/// directory sees a server's hiccup as EIO.
bool may_pass(Errc code) noexcept {
  return code == Errc::kUnavailable || code == Errc::kTimedOut || code == Errc::kIo ||
         code == Errc::kCancelled;
}

}  // namespace

PartRun::PartRun(BlobFill& fill, const Part& part)
    : fill_(fill),
      part_(part),
      file_size_(fill.target().file().size),
      position_(part.range.begin),
      marked_(part.range.begin / kBlock * kBlock) {
  if (fill_.target().source->has_local_files()) own_reads_.emplace(fill_.own_reads());
}

PartRun::Outcome PartRun::execute(std::stop_token stop) {
  try {
    fill_.target().source->read(fill_.target().file(), part_.range, *this, stop);
    if (position_ == part_.range.end) return {};
    return {.again = TransientError(Errc::kUnavailable, "the answer ended early"), .fatal = {}};
  } catch (const TransientError& error) {
    if (refused_ || stop.stop_requested()) return {};
    return {.again = error, .fatal = {}};
  } catch (const Error& error) {
    if (refused_ || stop.stop_requested()) return {};
    if (!may_pass(error.code())) return {.again = {}, .fatal = error};
    return {.again = TransientError(error.code(), error.what()), .fatal = {}};
  } catch (const std::exception& error) {
    return {.again = {}, .fatal = Error(Errc::kInternal, error.what())};
  }
}

void PartRun::write(std::uint64_t offset, std::span<const std::byte> data) {
  if (offset != position_ || data.size() > part_.range.end - position_) {
    throw Error(Errc::kInternal, "the source sent bytes that were not asked for");
  }
  if (own_reads_) own_reads_->count();
  while (!data.empty()) {
    const auto piece = data.first(std::min(data.size(), fill_.largest_piece()));
    if (!fill_.wait_for_turn(part_, position_, piece.size())) refuse();
    if (part_.place == Place::kDisk) {
      write_to_disk(piece);
    } else {
      write_to_memory(piece);
    }
    data = data.subspan(piece.size());
  }
}

void PartRun::skipped(std::uint64_t bytes) {
  if (!fill_.wait_for_turn_skipped(part_, bytes) || !fill_.skipped(part_, bytes)) refuse();
}

void PartRun::write_to_disk(std::span<const std::byte> data) {
  if (part_.stop.stop_requested()) refuse();
  const ByteRange bytes{position_, position_ + data.size()};
  const ByteRange whole = whole_blocks({marked_, bytes.end}, file_size_);
  try {
    const auto use = fill_.use_partial();
    if (!use) refuse();
    fill_.write_to_disk([&] {
      (*use)->write(bytes.begin, data);
      if (!whole.empty()) (*use)->set_written(whole);
    });
  } catch (const Error& error) {
    if (!refused_) fill_.disk_failed(error);
    refuse();
  }
  position_ = bytes.end;
  if (!whole.empty()) marked_ = whole.end;
  if (!fill_.received(part_, bytes, whole, nullptr)) refuse();
}

void PartRun::write_to_memory(std::span<const std::byte> data) {
  const auto memory = fill_.memory();
  if (!memory) refuse();
  while (!data.empty()) {
    const std::uint64_t block = position_ / kBlock;
    const std::uint64_t end = std::min((block + 1) * kBlock, file_size_);
    const auto taken = data.first(std::min(data.size(), static_cast<std::size_t>(end - position_)));
    block_.reserve(kBlock);
    block_.insert(block_.end(), taken.begin(), taken.end());
    const ByteRange bytes{position_, position_ + taken.size()};
    position_ = bytes.end;
    data = data.subspan(taken.size());
    ByteRange whole;
    BlockBytes complete;
    if (position_ == end) {
      whole = {block * kBlock, end};
      complete = memory->insert(block, std::exchange(block_, {}));
    }
    if (!fill_.received(part_, bytes, whole, complete)) refuse();
  }
}

void PartRun::refuse() {
  refused_ = true;
  throw Error(Errc::kCancelled, "these bytes are not wanted any more");
}

}  // namespace weightfs::fetch
