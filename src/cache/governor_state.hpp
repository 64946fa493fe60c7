// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cache/governor.hpp"
#include "cache/shared_content.hpp"
#include "cache/weights.hpp"
#include "fetch/target.hpp"

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weightfs::cache {

[[nodiscard]] inline fetch::Target target_of(const snapshot::SnapshotPtr& snapshot,
                                             std::size_t file_index) {
  return {.snapshot = snapshot, .file_index = file_index, .source = nullptr};
}

/// Of all that is held.
[[nodiscard]] inline std::vector<Digest> keys_of(const policy::Holdings& holdings) {
  std::vector<Digest> keys;
  for (const policy::Area area : {policy::Area::kProbation, policy::Area::kResident}) {
    holdings.walk(area, [&](const policy::Holding& holding) {
      keys.push_back(holding.snapshot);
      return true;
    });
  }
  return keys;
}

/// What is known of the stock, and of who wants what in it. Used by the Governor alone.
struct Governor::State {
  State(const GovernorOptions& options, const Log& logger)
      : log(options.use_log, options.writing, logger), tenants(options.tenants) {}

  /// The file is kept from now on, for this snapshot.
  void add(const fetch::Target& file, std::uint64_t bytes) {
    const Digest content = file.key();
    if (shared.contains(content)) {
      shared.set_present(content, true);
      shares_moved = true;
      return;
    }
    const Digest& key = file.snapshot->key();
    own[key] += bytes;
    holdings.set_bytes(key, holdings.find(key)->bytes + bytes);
  }
  void drop(const Digest& snapshot_key) {
    own.erase(snapshot_key);
    shares_moved = true;
    if (!holdings.find(snapshot_key)) return;
    holdings.drop(snapshot_key);
    log.drop(snapshot_key);
  }
  /// Shared bytes count with whoever goes last, which every use may change.
  void settle_shares() {
    if (!std::exchange(shares_moved, false) || shared.empty()) return;
    const auto shares = shared.assign(holdings);
    const auto of = [](const auto& bytes, const Digest& key) {
      const auto found = bytes.find(key);
      return found == bytes.end() ? 0 : found->second;
    };
    for (const Digest& key : keys_of(holdings)) {
      holdings.set_bytes(key, of(own, key) + of(shares, key));
    }
  }

  policy::References references;
  policy::Holdings holdings;
  UseLog log;
  std::unordered_map<Digest, std::uint64_t> own;  ///< bytes by snapshot that no other one has
  SharedContent shared;
  bool shares_moved = false;
  std::vector<Tenant> tenants;
  Weights weights;
  std::uint64_t stray_bytes = 0;  ///< of blobs that no snapshot has, as far as is known
  Digest latest;                  ///< the last one in the order of use
  GovernorStatus counts;
};

}  // namespace weightfs::cache
