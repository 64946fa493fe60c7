// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "catalog/catalog.hpp"
#include "snapshot/snapshot.hpp"

#include <memory>
#include <unordered_map>

namespace weightfs::vfs {

/// Values that are made of a snapshot, each once: T(snapshot). They go by key, so nothing in them
/// may depend on digests that are learned. Those of snapshots that left the catalog go when the
/// next one is made.
///
/// Thread-safe. The catalog must outlive it.
template <class T>
class PerSnapshot {
 public:
  using Pointer = std::shared_ptr<const T>;

  explicit PerSnapshot(const catalog::Catalog& catalog) : catalog_(catalog) {}

  Pointer of(const snapshot::Snapshot& snapshot) {
    const auto known = values_.with([&](const Values& values) -> Pointer {
      const auto found = values.find(snapshot.key());
      return found == values.end() ? nullptr : found->second;
    });
    if (known) return known;
    auto made = std::make_shared<const T>(snapshot);
    forget_old();
    return values_.with(
        [&](Values& values) { return values.try_emplace(snapshot.key(), made).first->second; });
  }

 private:
  using Values = std::unordered_map<Digest, Pointer>;

  void forget_old() {
    auto values = values_.with([](const Values& all) { return all; });
    std::erase_if(values,
                  [&](const auto& entry) { return catalog_.snapshot(entry.first) != nullptr; });
    values_.with([&](Values& all) {
      for (const auto& [key, gone] : values) all.erase(key);
    });
  }

  const catalog::Catalog& catalog_;
  Synchronized<Values> values_;
};

}  // namespace weightfs::vfs
