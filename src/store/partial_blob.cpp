// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/partial_blob.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "store/partial_blob_state.hpp"
#include "store/parts_file.hpp"

#include <fmt/format.h>

#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <utility>

namespace weightfs::store {

namespace {

/// The midstates to keep. A caller that goes by "parts that are whole" has one more where the size
/// is a multiple of the part size; the digest itself stands for that one.
std::span<const Midstate> kept_midstates(std::span<const Midstate> midstates, std::uint64_t size) {
  const std::size_t count = midstate_count(size);
  const bool whole_last = size > 0 && size % kPartSize == 0;
  if (midstates.size() == count || (whole_last && midstates.size() == count + 1)) {
    return midstates.first(count);
  }
  if (midstates.empty()) return {};
  throw Error(Errc::kInternal, fmt::format("{} midstates for a blob of {} bytes, not {}",
                                           midstates.size(), size, count));
}

}  // namespace

PartialBlob::PartialBlob(std::unique_ptr<State> state) : state_(std::move(state)) {
}

PartialBlob::~PartialBlob() = default;

std::uint64_t PartialBlob::written_bytes() const {
  return state_->map->written_bytes();
}

std::vector<bool> PartialBlob::written_blocks() const {
  return state_->map->written_blocks();
}

const Fd& PartialBlob::fd() const noexcept {
  return state_->data;
}

void PartialBlob::write(std::uint64_t offset, std::span<const std::byte> data) {
  if (offset > state_->size || data.size() > state_->size - offset) {
    throw Error(Errc::kInternal, "a write past the end of a partial blob");
  }
  try {
    write_at(state_->data, offset, data);
  } catch (const Error& error) {
    state_->volume.health().write_failed(error, data.size());
    throw Error(error.code(), fmt::format("partial blob {}, bytes {}-{}: {}", state_->key.hex(),
                                          offset, offset + data.size(), error.what()));
  }
}

void PartialBlob::set_written(ByteRange range) {
  state_->volume.health().watch([&] { state_->map->set_written(range); });
}

bool PartialBlob::clone_from(const Fd& original) {
  // FICLONE would take over the other's size.
  if (identity_of(original).size != state_->size) return false;
  return ::ioctl(state_->data.value(), FICLONE, original.value()) == 0;
}

/// Not again: it would succeed, with less than the caller has been told of.
void PartialBlob::refuse_lost() const {
  if (!state_->map->distrusted()) return;
  throw Error(Errc::kIo, fmt::format("the disk has lost bytes of partial blob {} that it had taken",
                                     state_->key.hex()));
}

void PartialBlob::checkpoint() {
  refuse_lost();
  state_->volume.health().watch([&] { flush(); });
}

void PartialBlob::flush() {
  const bool synced = state_->names_synced.with([](bool value) { return value; });
  if (!synced) {
    // Once: without its names, flushed data could not be found again.
    sync_directory(state_->folder);
    sync_directory(state_->folder.parent_path());
    state_->names_synced.with([](bool& value) { value = true; });
  }
  state_->map->checkpoint(state_->data);
}

Blob PartialBlob::commit(const Digest& digest, std::span<const Midstate> midstates) {
  refuse_lost();
  return state_->volume.health().watch([&] { return publish(digest, midstates); });
}

Blob PartialBlob::publish(const Digest& digest, std::span<const Midstate> midstates) {
  State& state = *state_;
  if (state.map->written_bytes() != state.size) {
    throw Error(Errc::kInternal, "commit of a partial blob that is not complete");
  }
  const std::span<const Midstate> kept = kept_midstates(midstates, state.size);
  Volume::State::Staged staged{.data = state.folder / "data", .parts = {}, .identity = {}};
  if (!kept.empty()) {
    staged.parts = state.folder / "parts";
    write_parts(staged.parts, digest, state.size, kept);
  }
  if (::fchmod(state.data.value(), 0444) != 0) throw_errno(errno, "chmod " + staged.data.string());
  // fsync, not fdatasync: the modification time is part of the blob's identity.
  if (::fsync(state.data.value()) != 0) {
    const int error = errno;
    state.map->distrust();
    throw_errno(error, "flush " + staged.data.string());
  }
  staged.identity = identity_of(state.data);
  if (staged.identity.size != state.size) {
    throw Error(Errc::kInternal, fmt::format("the data of partial blob {} has {} bytes, not {}",
                                             state.key.hex(), staged.identity.size, state.size));
  }
  Blob blob = state.volume.publish(digest, staged);
  state.remove_files();
  return blob;
}

void PartialBlob::discard() {
  state_->remove_files();
}

void PartialBlob::quarantine(const std::string& reason) {
  state_->volume.health().watch(
      [&] { state_->volume.quarantine().take(state_->folder / "data", state_->key, reason); });
  state_->remove_files();
}

}  // namespace weightfs::store
