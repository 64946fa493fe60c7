// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cache/shared_content.hpp"

#include "fetch/target.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <ranges>

namespace weightfs::cache {

namespace {

using policy::Area;
using snapshot::SnapshotPtr;

template <class Visit>
void each_content(const std::vector<SnapshotPtr>& snapshots, const Visit& visit) {
  for (const SnapshotPtr& snapshot : snapshots) {
    for (std::size_t i = 0; i < snapshot->files().size(); ++i) {
      const fetch::Target file{.snapshot = snapshot, .file_index = i, .source = nullptr};
      visit(file.key(), snapshot->key(), file.file().size);
    }
  }
}

std::size_t hash_of(const Digest& content_key) {
  return std::hash<Digest>{}(content_key);
}

/// Sorted; with what only has the hash of another.
std::vector<std::size_t> repeated_hashes(const std::vector<SnapshotPtr>& snapshots) {
  std::vector<std::size_t> hashes;
  each_content(snapshots, [&](const Digest& content, const Digest&, std::uint64_t) {
    hashes.push_back(hash_of(content));
  });
  std::ranges::sort(hashes);
  std::vector<std::size_t> repeated;
  for (auto at = hashes.begin(); (at = std::adjacent_find(at, hashes.end())) != hashes.end();) {
    repeated.push_back(*at);
    at = std::upper_bound(at, hashes.end(), *at);
  }
  return repeated;
}

/// In the order in which they go, whoever wants room.
std::unordered_map<Digest, std::size_t> ranks_of(const policy::Holdings& holdings) {
  std::unordered_map<Digest, std::size_t> ranks;
  for (const Area area : {Area::kProbation, Area::kResident}) {
    holdings.walk(area, [&](const policy::Holding& holding) {
      ranks.emplace(holding.snapshot, ranks.size());
      return true;
    });
  }
  return ranks;
}

}  // namespace

SharedContent::SharedContent(const std::vector<SnapshotPtr>& snapshots) {
  const std::vector<std::size_t> repeated = repeated_hashes(snapshots);
  if (repeated.empty()) return;
  each_content(snapshots,
               [&](const Digest& content, const Digest& snapshot_key, std::uint64_t size) {
                 if (!std::ranges::binary_search(repeated, hash_of(content))) return;
                 Entry& entry = entries_[content];
                 entry.size = size;
                 if (entry.snapshots.empty() || entry.snapshots.back() != snapshot_key) {
                   entry.snapshots.push_back(snapshot_key);
                 }
               });
  for (Entry& entry : std::views::values(entries_)) std::ranges::sort(entry.snapshots);
}

void SharedContent::set_present(const Digest& content_key, bool present) {
  if (const auto found = entries_.find(content_key); found != entries_.end()) {
    found->second.present = present;
  }
}

std::vector<Digest> SharedContent::others(const Digest& content_key,
                                          const Digest& snapshot_key) const {
  const auto found = entries_.find(content_key);
  if (found == entries_.end()) return {};
  std::vector<Digest> others = found->second.snapshots;
  std::erase(others, snapshot_key);
  return others;
}

std::vector<Digest> SharedContent::without_holder(const policy::Holdings& holdings) const {
  std::vector<Digest> found;
  for (const Entry& entry : std::views::values(entries_)) {
    const auto held = [&](const Digest& key) { return holdings.find(key) != nullptr; };
    if (entry.present && std::ranges::none_of(entry.snapshots, held)) {
      found.push_back(entry.snapshots.front());
    }
  }
  return found;
}

std::unordered_map<Digest, std::uint64_t> SharedContent::assign(
    const policy::Holdings& holdings) const {
  std::unordered_map<Digest, std::uint64_t> bytes;
  const auto ranks = ranks_of(holdings);
  for (const Entry& entry : std::views::values(entries_)) {
    if (!entry.present) continue;
    const Digest* last = nullptr;
    std::size_t last_rank = 0;
    for (const Digest& key : entry.snapshots) {
      const auto rank = ranks.find(key);
      if (rank == ranks.end() || (last != nullptr && rank->second < last_rank)) continue;
      last = &key;
      last_rank = rank->second;
    }
    if (last != nullptr) bytes[*last] += entry.size;
  }
  return bytes;
}

}  // namespace weightfs::cache
