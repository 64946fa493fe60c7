// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cache/shadow_stock.hpp"

#include "store/blob_listing.hpp"
#include "store/filesystem.hpp"

#include <algorithm>
#include <set>

namespace weightfs::cache {

namespace fs = std::filesystem;

ShadowStock::ShadowStock(const std::vector<fs::path>& store_directories)
    : directories_(store_directories) {
  content_.with([&](Content& content) {
    for (const fs::path& directory : directories_) {
      for (const store::ListedBlob& blob : store::list_blobs(directory)) {
        if (!content.sizes.emplace(blob.digest, blob.size).second) continue;
        content.bytes += blob.size;
      }
    }
    kept_bytes_ = content.bytes;
  });
}

void ShadowStock::add(const fetch::Target& file) {
  content_.with([&](Content& content) {
    if (!content.sizes.emplace(file.key(), file.file().size).second) return;
    content.bytes += file.file().size;
  });
}

Stock::Presence ShadowStock::presence(const fetch::Target& file) const {
  const bool there =
      content_.with([&](const Content& content) { return content.sizes.contains(file.key()); });
  return there ? Presence::kComplete : Presence::kNone;
}

std::vector<store::VolumeStatus> ShadowStock::volumes() const {
  store::Space space;
  std::set<std::uint64_t> counted;
  for (const fs::path& directory : directories_) {
    const store::Space one = store::space_for(directory);
    if (!counted.insert(one.device).second) continue;
    space.capacity += one.capacity;
    space.free += one.free;
  }
  return content_.with([&](const Content& content) {
    const std::uint64_t free = space.free + kept_bytes_;  // if nothing were kept
    const store::StoreUsage usage{.blobs = content.sizes.size(),
                                  .bytes = content.bytes,
                                  .capacity = space.capacity,
                                  .free = free - std::min(free, content.bytes)};
    return std::vector{store::VolumeStatus{.directory = {},
                                           .state = store::VolumeState::kUsable,
                                           .error = {},
                                           .filesystem = 0,
                                           .usage = usage}};
  });
}

std::uint64_t ShadowStock::remove(const fetch::Target& file) {
  return content_.with([&](Content& content) {
    const auto gone = content.sizes.extract(file.key());
    if (!gone) return std::uint64_t{0};
    content.bytes -= gone.mapped();
    return gone.mapped();
  });
}

std::uint64_t ShadowStock::remove_but(const std::unordered_set<Digest>& known) {
  return content_.with([&](Content& content) {
    const std::uint64_t before = content.bytes;
    std::erase_if(content.sizes, [&](const auto& one) {
      if (known.contains(one.first)) return false;
      content.bytes -= one.second;
      return true;
    });
    return before - content.bytes;
  });
}

}  // namespace weightfs::cache
