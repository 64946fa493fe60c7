// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/store.hpp"

#include "base/error.hpp"

#include <fmt/format.h>

#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <exception>
#include <unordered_set>
#include <utility>

namespace weightfs::store {

namespace {

/// What may be over some day without a person, in a directory that was all right once.
bool disk_fails(Errc code, Unopenable unopenable) noexcept {
  return code == Errc::kIo || code == Errc::kNoSpace ||
         (code == Errc::kPermission && unopenable == Unopenable::kTryLater);
}

void add(StoreUsage& sum, const StoreUsage& more) noexcept {
  sum.blobs += more.blobs;
  sum.bytes += more.bytes;
  sum.partial_bytes += more.partial_bytes;
  sum.evicted_open_bytes += more.evicted_open_bytes;
  sum.quarantined += more.quarantined;
}

}  // namespace

Store::Store(const Clock& clock, Log log)
    : clock_(clock), log_(std::move(log)), slots_(std::make_shared<const Slots>()) {
}

Store::~Store() = default;

std::unique_ptr<Store> Store::open(const StoreOptions& options, const Clock& clock, Log log) {
  auto store = std::make_unique<Store>(clock, std::move(log));
  store->open_volumes(options);
  return store;
}

void Store::open_volumes(const StoreOptions& options, Unopenable unopenable) {
  const std::lock_guard turn(opening_);
  Slots all = *slots();
  std::exception_ptr failure;
  bool any = false;
  for (const std::filesystem::path& directory : options.directories) {
    auto found = std::ranges::find(
        all, directory, [](const auto& slot) -> const auto& { return slot->directory(); });
    if (found == all.end()) {
      VolumeOptions volume{.directory = directory,
                           .allow_network_store = options.allow_network_store,
                           .boot_id = options.boot_id,
                           .quarantine = options.quarantine};
      found = all.insert(all.end(), std::make_shared<VolumeSlot>(std::move(volume), clock_, log_));
    }
    VolumeSlot& slot = **found;
    try {
      slot.open();
      any = true;
    } catch (const Error& error) {
      if (!disk_fails(error.code(), unopenable)) throw;
      failure = std::current_exception();
      slot.put_off(error);
    }
  }
  if (failure && !any && unopenable == Unopenable::kRefuse) std::rethrow_exception(failure);
  for (const auto& slot : all) {
    if (!slot->volume()) {
      log_.error("{}; it is tried again", slot->trouble());
    }
  }
  slots_.with([&](auto& current) { current = std::make_shared<const Slots>(std::move(all)); });
}

bool Store::probe() {
  const std::lock_guard turn(opening_);
  bool any = false;
  for (const auto& slot : *slots()) {
    if (!slot->probe()) continue;
    tidy(*slot->volume());
    any = true;
  }
  return any;
}

/// What was fetched elsewhere while it was away needs no second place.
void Store::tidy(Volume& volume) {
  for (const PartialKey& key : volume.idle_partials()) {
    const bool elsewhere = std::ranges::any_of(opened(), [&](const Volume* other) {
      return other->contains(key) ||
             (other != &volume && other->partial_use(key) != PartialUse::kNone);
    });
    try {
      if (elsewhere) volume.discard_partial(key);
    } catch (const Error& error) {
      log_.warning("{}", error.what());
    }
  }
}

template <class Change>
void Store::each_usable(const Change& change) {
  for (Volume* const volume : opened()) {
    if (!volume->usable()) continue;
    try {
      change(*volume);
    } catch (const Error&) {
      if (volume->usable()) throw;
    }
  }
}

std::shared_ptr<const Store::Slots> Store::slots() const {
  return slots_.with([](const auto& current) { return current; });
}

std::vector<Volume*> Store::opened() const {
  std::vector<Volume*> volumes;
  for (const auto& slot : *slots()) {
    if (Volume* const volume = slot->volume()) volumes.push_back(volume);
  }
  return volumes;
}

Volume* Store::with_blob(const Digest& digest) const {
  for (Volume* const volume : opened()) {
    if (volume->contains(digest)) return volume;
  }
  return nullptr;
}

std::vector<VolumeStatus> Store::volumes() const {
  std::vector<VolumeStatus> all;
  for (const auto& slot : *slots()) all.push_back(slot->status());
  return all;
}

StoreUsage Store::usage() const {
  StoreUsage sum;
  std::unordered_set<std::uint64_t> filesystems;
  for (const VolumeStatus& volume : volumes()) {
    if (volume.state == VolumeState::kNotOpened) continue;
    add(sum, volume.usage);
    if (!filesystems.insert(volume.filesystem).second) continue;
    sum.capacity += volume.usage.capacity;
    sum.free += volume.usage.free;
  }
  return sum;
}

bool Store::writable() const {
  return std::ranges::any_of(*slots(), [](const auto& slot) { return slot->usable(); });
}

std::string Store::trouble() const {
  std::string all;
  for (const auto& slot : *slots()) {
    const std::string one = slot->trouble();
    if (one.empty()) continue;
    if (!all.empty()) all += "; ";
    all += one;
  }
  return all;
}

std::optional<Blob> Store::find(const Digest& digest) {
  std::exception_ptr failure;
  for (Volume* const volume : opened()) {
    try {
      if (auto blob = volume->find(digest)) return blob;
    } catch (const Error&) {
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
  return std::nullopt;
}

bool Store::contains(const Digest& digest) const {
  return with_blob(digest) != nullptr;
}

bool Store::contains(const Digest& digest, std::uint64_t size) const {
  return std::ranges::any_of(opened(),
                             [&](const Volume* volume) { return volume->contains(digest, size); });
}

bool Store::in_use(const Digest& digest) const {
  return std::ranges::any_of(opened(),
                             [&](const Volume* volume) { return volume->in_use(digest); });
}

void Store::touch(const Digest& digest) {
  // Whoever does not have it takes no notice, and who has it need not be looked for.
  for (Volume* const volume : opened()) volume->touch(digest);
}

bool Store::verified_this_boot(const Digest& digest) const {
  const Volume* const volume = with_blob(digest);
  return volume && volume->verified_this_boot(digest);
}

void Store::mark_verified(const Digest& digest) {
  if (Volume* const volume = with_blob(digest)) volume->mark_verified(digest);
}

std::optional<std::vector<Midstate>> Store::midstates(const Digest& digest) const {
  const Volume* const volume = with_blob(digest);
  return volume ? volume->midstates(digest) : std::nullopt;
}

std::unique_ptr<PartialBlob> Store::partial(const PartialKey& key, std::uint64_t size) {
  const NameLocks::Turn turn(placing_, key);
  for (Volume* const volume : opened()) {
    const PartialUse use = volume->partial_use(key);
    const bool wanted =
        use == PartialUse::kFilling || (use == PartialUse::kIdle && volume->usable());
    if (!wanted) continue;
    try {
      return volume->partial(key, size);
    } catch (const Error&) {
      if (volume->usable()) throw;
    }
  }
  return place(key, size);
}

std::unique_ptr<PartialBlob> Store::place(const PartialKey& key, std::uint64_t size) {
  struct Candidate {
    Volume* volume;
    StoreUsage usage;
  };
  std::vector<Candidate> candidates;
  for (Volume* const volume : opened()) {
    if (volume->usable()) candidates.push_back({volume, volume->usage()});
  }
  // Those that share a filesystem take turns.
  std::ranges::sort(candidates, [](const Candidate& left, const Candidate& right) {
    return std::pair(left.usage.free, right.usage.bytes + right.usage.partial_bytes) >
           std::pair(right.usage.free, left.usage.bytes + left.usage.partial_bytes);
  });
  std::exception_ptr full;
  for (const Candidate& candidate : candidates) {
    try {
      return candidate.volume->partial(key, size);
    } catch (const Error& error) {
      if (error.code() == Errc::kNoSpace) {
        full = std::current_exception();
      } else if (candidate.volume->usable()) {
        throw;
      }
    }
  }
  if (full) std::rethrow_exception(full);
  const std::string why = trouble();
  throw Error(Errc::kIo, why.empty() ? "the store is not open" : why);
}

Blob Store::adopt(const Digest& digest, const Adoption& adoption) {
  struct stat status{};
  if (::fstat(adoption.file.value(), &status) != 0) throw_errno(errno, "stat a file to link");
  const NameLocks::Turn turn(placing_, digest);
  for (Volume* const volume : opened()) {
    if (volume->usable() && volume->filesystem() == status.st_dev) {
      return volume->adopt(digest, adoption);
    }
  }
  throw Error(Errc::kUnsupported, "it is on another filesystem than the store");
}

PartialUse Store::partial_use(const PartialKey& key) const {
  PartialUse most = PartialUse::kNone;
  for (const Volume* const volume : opened()) most = std::max(most, volume->partial_use(key));
  return most;
}

std::uint64_t Store::partial_bytes(const PartialKey& key) const {
  std::uint64_t most = 0;
  for (const Volume* const volume : opened()) most = std::max(most, volume->partial_bytes(key));
  return most;
}

void Store::discard_partial(const PartialKey& key) {
  each_usable([&](Volume& volume) { volume.discard_partial(key); });
}

void Store::discard_partials_but(const std::unordered_set<PartialKey>& kept) {
  each_usable([&](Volume& volume) { volume.discard_partials_but(kept); });
}

bool Store::set_aside(const Digest& digest) const {
  const std::vector<Volume*> volumes = opened();
  const auto usable = [](const Volume* volume) { return volume->usable(); };
  if (std::ranges::all_of(volumes, usable)) return false;  // without asking an index
  return contains(digest) && std::ranges::none_of(volumes, [&](const Volume* volume) {
           return volume->usable() && volume->contains(digest);
         });
}

std::uint64_t Store::remove(const Digest& digest) {
  std::uint64_t bytes = 0;
  each_usable([&](Volume& volume) { bytes += volume.remove(digest); });
  return bytes;
}

void Store::quarantine(const Digest& digest, const std::string& reason,
                       const std::optional<Identity>& identity) {
  for (Volume* const volume : opened()) volume->quarantine(digest, reason, identity);
}

VerifyOutcome Store::verify(const Digest& digest,
                            const std::function<void(std::uint64_t)>& progress) {
  Volume* const volume = with_blob(digest);
  return volume ? volume->verify(digest, progress) : VerifyOutcome::kMissing;
}

std::vector<Digest> Store::list() const {
  std::vector<Digest> all;
  for (const Volume* const volume : opened()) {
    const std::vector<Digest> some = volume->list();
    all.insert(all.end(), some.begin(), some.end());
  }
  std::ranges::sort(all);
  const auto again = std::ranges::unique(all);
  all.erase(again.begin(), again.end());
  return all;
}

}  // namespace weightfs::store
