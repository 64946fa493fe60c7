// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/wanted_files.hpp"

#include <algorithm>

namespace weightfs::fetch {

void WantedFiles::add(const snapshot::SnapshotPtr& snapshot, const source::SourcePtr& source) {
  for (std::size_t i = 0; i < snapshot->files().size(); ++i) {
    const snapshot::File& file = snapshot->files()[i];
    if (!file.sha256) continue;
    const Target target{.snapshot = snapshot, .file_index = i, .source = source};
    if (by_digest_.emplace(*file.sha256, target).second) {
      by_size_[file.size].push_back(*file.sha256);
    }
  }
}

const Target* WantedFiles::find(const Digest& sha256, std::uint64_t size) const {
  const auto found = by_digest_.find(sha256);
  return found != by_digest_.end() && found->second.file().size == size ? &found->second : nullptr;
}

bool WantedFiles::any_of_size(std::uint64_t size,
                              const std::function<bool(const Digest&)>& is_missing) const {
  const auto found = by_size_.find(size);
  return found != by_size_.end() && std::ranges::any_of(found->second, is_missing);
}

}  // namespace weightfs::fetch
