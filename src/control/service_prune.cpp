// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/service.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace weightfs::control {

/// Empty where nobody needs it.
std::string Service::reason_to_keep(const Digest& key, const std::set<Digest>& confirmed,
                                    const std::set<Digest>& shown) const {
  if (confirmed.contains(key)) return "confirmed";
  if (shown.contains(key)) return "shown";
  if (std::ranges::any_of(leased(), [&](const auto& each) { return each->key() == key; })) {
    return "leased";
  }
  if (parts_.cache.is_open(key)) return "open";
  const auto warm = parts_.warmer.progress(key);
  return warm && warm->running ? "fetching" : "";
}

api::Pruned Service::prune(const std::string& name, std::uint64_t keep, DryRun dry_run) {
  if (!name.empty()) (void)require(name);
  const std::vector<catalog::Model> models = parts_.catalog.list();
  std::set<Digest> confirmed;
  std::set<Digest> shown;
  for (const catalog::Model& model : models) {
    shown.insert(model.current);
    if (model.confirmed) confirmed.insert(*model.confirmed);
  }

  api::Pruned pruned{.dry_run = dry_run == DryRun::kYes};
  Snapshots removed;
  std::map<std::string, std::vector<Digest>> going;
  std::map<Digest, snapshot::SnapshotPtr> staying;
  for (const catalog::Model& model : models) {
    Snapshots all = snapshots_of(model, Scope::kAllRevisions);
    std::ranges::reverse(all);  // the newest first
    std::uint64_t old = 0;
    for (const snapshot::SnapshotPtr& snapshot : all) {
      const Digest& key = snapshot->key();
      api::OldRevision revision{.name = model.name,
                                .revision = model.origin(*snapshot).revision,
                                .key = key.hex(),
                                .kept = ""};
      bool stays = key == model.current || (!name.empty() && name != model.name);
      if (!stays) {
        revision.kept = reason_to_keep(key, confirmed, shown);
        if (old++ < keep && revision.kept.empty()) revision.kept = "newest";
        stays = !revision.kept.empty();
        (stays ? pruned.kept : pruned.removed).push_back(std::move(revision));
      }
      if (stays) {
        staying.emplace(key, snapshot);
      } else {
        removed.push_back(snapshot);
        going[model.name].push_back(key);
      }
    }
  }
  std::erase_if(removed, [&](const auto& each) { return staying.contains(each->key()); });
  Snapshots others;
  for (const auto& [key, snapshot] : staying) others.push_back(snapshot);
  if (dry_run == DryRun::kNo) {
    for (const auto& [model, keys] : going) {
      try {
        parts_.catalog.forget(model, keys);
      } catch (const Error& error) {
        if (error.code() != Errc::kNotFound) throw;  // removed meanwhile, with its revisions
      }
      for (const Digest& key : keys) {
        tell(telemetry::EventKind::kRemove, {.name = model, .source = {}, .current = key},
             "an old revision, pruned");
      }
    }
    discard_partials(removed, others);
  }
  const api::Freed freed = release(removed, digests_of(others), dry_run);
  if (dry_run == DryRun::kNo && !going.empty()) parts_.cache.stock_changed();
  pruned.blobs = freed.blobs;
  pruned.bytes = freed.bytes;
  return pruned;
}

}  // namespace weightfs::control
