// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/volume.hpp"

#include "base/error.hpp"
#include "store/block_map.hpp"
#include "store/partial_blob_state.hpp"
#include "store/parts_file.hpp"
#include "store/verification.hpp"
#include "store/volume_state.hpp"

#include <system_error>
#include <utility>

namespace weightfs::store {

Volume::Volume(std::unique_ptr<State> state) : state_(std::move(state)) {
}

Volume::~Volume() = default;

std::unique_ptr<Volume> Volume::open(const VolumeOptions& options, const Clock& clock, Log log) {
  return std::unique_ptr<Volume>(
      new Volume(std::make_unique<State>(options, clock, std::move(log))));
}

std::optional<Blob> Volume::find(const Digest& digest) {
  return state_->find(digest).blob;
}

bool Volume::contains(const Digest& digest) const {
  return state_->row(digest).has_value();
}

bool Volume::contains(const Digest& digest, std::uint64_t size) const {
  const std::optional<IndexRow> known = state_->row(digest);
  return known && known->identity.size == size;
}

void Volume::touch(const Digest& digest) {
  state_->touch(digest);
}

bool Volume::verified_this_boot(const Digest& digest) const {
  return state_->verified_this_boot(digest);
}

void Volume::mark_verified(const Digest& digest) {
  state_->mark_verified(digest);
}

std::optional<std::vector<Midstate>> Volume::midstates(const Digest& digest) const {
  const std::optional<IndexRow> row = state_->row(digest);
  if (!row) return std::nullopt;
  if (midstate_count(row->identity.size) == 0) return std::vector<Midstate>();
  std::optional<PartsFile> parts = read_parts(state_->layout().parts(digest));
  if (!parts || parts->digest != digest || parts->size != row->identity.size) return std::nullopt;
  return std::move(parts->midstates);
}

std::unique_ptr<PartialBlob> Volume::partial(const PartialKey& key, std::uint64_t size) {
  try {
    return std::unique_ptr<PartialBlob>(
        new PartialBlob(std::make_unique<PartialBlob::State>(*state_, key, size)));
  } catch (const Error& error) {
    state_->health().write_failed(error, size);
    throw;
  }
}

Blob Volume::adopt(const Digest& digest, const Adoption& adoption) {
  return state_->adopt(digest, adoption);
}

bool Volume::in_use(const Digest& digest) const {
  return state_->in_use(digest);
}

PartialUse Volume::partial_use(const PartialKey& key) const {
  return state_->partials().use(key);
}

std::uint64_t Volume::partial_bytes(const PartialKey& key) const {
  if (partial_use(key) != PartialUse::kIdle) return 0;
  const auto summary = BlockMap::peek({.path = state_->layout().partial(key) / "map",
                                       .key = key,
                                       .size = 0,
                                       .boot_id = state_->boot_id()});
  return summary ? summary->believed_bytes : 0;
}

void Volume::discard_partial(const PartialKey& key) {
  PartialTable::Claim claim = state_->partials().claim(key);
  std::error_code error;
  std::filesystem::remove_all(state_->layout().partial(key), error);
  if (error) {
    state_->health().watch(
        [&] { throw_errno(error.value(), "remove " + state_->layout().partial(key).string()); });
  }
  claim.forget();
}

void Volume::discard_partials_but(const std::unordered_set<PartialKey>& kept) {
  for (const PartialKey& key : state_->partials().all_idle()) {
    if (kept.contains(key)) continue;
    try {
      discard_partial(key);
    } catch (const Error& error) {
      if (error.code() != Errc::kBusy) throw;  // somebody has just come for it
    }
  }
}

std::uint64_t Volume::remove(const Digest& digest) {
  return state_->health().watch([&] { return state_->remove(digest); });
}

void Volume::quarantine(const Digest& digest, const std::string& reason,
                        const std::optional<Identity>& identity) {
  state_->health().watch([&] { state_->quarantine_blob(digest, identity, reason); });
}

VerifyOutcome Volume::verify(const Digest& digest,
                             const std::function<void(std::uint64_t)>& progress) {
  const State::Lookup lookup = state_->find(digest);
  switch (lookup.presence) {
    case State::Presence::kMissing:
      return VerifyOutcome::kMissing;
    case State::Presence::kDiffers:
      return VerifyOutcome::kCorrupt;
    case State::Presence::kIntact:
      break;
  }
  const Blob& blob = *lookup.blob;
  const Identity identity = identity_of(*blob.fd);
  const std::optional<std::vector<Midstate>> recorded = midstates(digest);
  const Rehash found = rehash(blob, recorded.value_or(std::vector<Midstate>()), progress);
  if (!found.intact) {
    quarantine(digest, found.fault, identity);
    return VerifyOutcome::kCorrupt;
  }
  state_->mark_verified(digest);
  if (!recorded || *recorded != found.midstates) state_->renew_parts(blob, found.midstates);
  return VerifyOutcome::kIntact;
}

StoreUsage Volume::usage() const {
  return state_->usage();
}

std::vector<Digest> Volume::list() const {
  constexpr std::size_t kPage = 4096;
  std::vector<Digest> digests;
  std::optional<Digest> last;
  for (;;) {
    const std::vector<Digest> page = state_->index().list(last, kPage);
    digests.insert(digests.end(), page.begin(), page.end());
    if (page.size() < kPage) return digests;
    last = page.back();
  }
}

const std::filesystem::path& Volume::directory() const noexcept {
  return state_->layout().directory();
}

bool Volume::usable() const noexcept {
  return state_->health().usable();
}

std::string Volume::trouble() const {
  return state_->health().trouble();
}

void Volume::probe() {
  state_->probe();
}

bool Volume::was_replaced() const {
  return state_->was_replaced();
}

std::vector<PartialKey> Volume::idle_partials() const {
  return state_->partials().all_idle();
}

std::uint64_t Volume::filesystem() const noexcept {
  return state_->filesystem();
}

}  // namespace weightfs::store
