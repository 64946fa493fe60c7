// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cache/store_stock.hpp"

#include "base/error.hpp"

namespace weightfs::cache {

bool StoreStock::complete(const snapshot::File& file) const {
  return file.sha256 && store_.contains(*file.sha256, file.size);
}

Stock::Presence StoreStock::presence(const fetch::Target& file) const {
  if (complete(file.file())) return Presence::kComplete;
  switch (store_.partial_use(file.key())) {
    case store::PartialUse::kNone:
      return Presence::kNone;
    case store::PartialUse::kIdle:
      return Presence::kPart;
    case store::PartialUse::kFilling:
      return Presence::kFilling;
  }
  return Presence::kNone;
}

bool StoreStock::in_use(const fetch::Target& file) const {
  const auto& digest = file.file().sha256;
  return digest && store_.in_use(*digest);
}

bool StoreStock::set_aside(const fetch::Target& file) const {
  const auto& digest = file.file().sha256;
  return digest && store_.set_aside(*digest);
}

std::uint64_t StoreStock::remove(const fetch::Target& file) {
  if (!complete(file.file())) {
    discard_partial(file);
    return 0;
  }
  const Digest& digest = *file.file().sha256;
  const std::uint64_t bytes = store_.remove(digest);
  observer_.blob_gone(digest);
  return bytes;
}

void StoreStock::discard_partial(const fetch::Target& file) {
  const Digest key = file.key();
  if (store_.partial_use(key) != store::PartialUse::kIdle) return;
  // Without a digest the bytes were all of one version, by its validator.
  if (file.file().sha256) observer_.bytes_discarded(key);
  try {
    store_.discard_partial(key);
  } catch (const Error& error) {
    if (error.code() != Errc::kBusy) throw;
  }
}

std::uint64_t StoreStock::remove_but(const std::unordered_set<Digest>& known) {
  std::uint64_t bytes = 0;
  for (const Digest& digest : store_.list()) {
    if (known.contains(digest)) continue;
    bytes += store_.remove(digest);
    observer_.blob_gone(digest);
  }
  return bytes;
}

}  // namespace weightfs::cache
