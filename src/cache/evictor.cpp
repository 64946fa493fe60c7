// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cache/evictor.hpp"

#include "base/error.hpp"
#include "fetch/target.hpp"

#include <unordered_map>

namespace weightfs::cache {

namespace {

using snapshot::SnapshotPtr;

template <class Visit>
void each_file(const SnapshotPtr& snapshot, const Visit& visit) {
  for (std::size_t i = 0; i < snapshot->files().size(); ++i) {
    const fetch::Target target{.snapshot = snapshot, .file_index = i, .source = nullptr};
    visit(target.key(), target.file());
  }
}

struct Content {
  const snapshot::File* file = nullptr;
  bool shared = false;
};

}  // namespace

Evicted Evictor::evict(const SnapshotPtr& snapshot, const Keeps& keeps, Do what) const {
  std::unordered_map<Digest, Content> contents;
  each_file(snapshot, [&](const Digest& key, const snapshot::File& file) {
    contents.try_emplace(key, Content{.file = &file});
  });
  for (const SnapshotPtr& other : catalog_.snapshots()) {
    if (other->key() == snapshot->key() || !keeps(other->key())) continue;
    each_file(other, [&](const Digest& key, const snapshot::File&) {
      if (const auto found = contents.find(key); found != contents.end()) {
        found->second.shared = true;
      }
    });
  }
  Evicted sum;
  for (const auto& [key, content] : contents) {
    const snapshot::File& file = *content.file;
    const bool complete = file.sha256 && store_.contains(*file.sha256, file.size);
    if (content.shared) {
      if (!complete) continue;
      ++sum.shared_blobs;
      sum.shared_bytes += file.size;
    } else if (!complete) {
      if (what == Do::kEvict) discard_partial(key, file.sha256.has_value());
    } else if (what == Do::kCount) {
      ++sum.blobs;
      sum.bytes += file.size;
    } else {
      const std::uint64_t bytes = store_.remove(*file.sha256);
      observer_.blob_gone(*file.sha256);
      if (bytes == 0 && file.size > 0) continue;  // somebody else was faster
      ++sum.blobs;
      sum.bytes += bytes;
    }
  }
  return sum;
}

void Evictor::discard_partial(const Digest& content_key, bool digest_known) const {
  if (store_.partial_use(content_key) != store::PartialUse::kIdle) return;
  // Without a digest the bytes were all of one version, by its validator.
  if (digest_known) observer_.bytes_discarded(content_key);
  try {
    store_.discard_partial(content_key);
  } catch (const Error& error) {
    if (error.code() != Errc::kBusy) throw;
  }
}

}  // namespace weightfs::cache
