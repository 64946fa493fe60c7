// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "vfs/hub_folders.hpp"

#include "snapshot/hub_reference.hpp"

#include <algorithm>
#include <ranges>
#include <tuple>
#include <utility>

namespace weightfs::vfs {

namespace {

using catalog::Model;
using snapshot::HubReference;
using snapshot::SnapshotPtr;

constexpr const char* kMain = "main";

/// Latest first.
std::vector<Model> models_of_hubs(const catalog::Catalog& catalog) {
  std::vector<Model> models = catalog.list();
  std::erase_if(models, [](const Model& model) {
    return !snapshot::hub_reference_of(model.source).has_value();
  });
  std::ranges::sort(models, [](const Model& left, const Model& right) {
    return std::tie(right.updated, left.name) < std::tie(left.updated, right.name);
  });
  return models;
}

}  // namespace

void HubFolder::add(HubRevision revision) {
  if (by_commit_.contains(revision.commit)) return;
  revisions_.push_back(std::move(revision));
  by_commit_.emplace(revisions_.back().commit, &revisions_.back());
}

const HubRevision* HubFolder::revision(std::string_view commit) const {
  const auto found = by_commit_.find(commit);
  return found == by_commit_.end() ? nullptr : found->second;
}

std::vector<std::string> HubFolder::commits() const {
  const auto commits = std::views::keys(by_commit_);
  return {commits.begin(), commits.end()};
}

std::optional<HubFolder::Blob> HubFolder::blob(std::string_view etag) const {
  for (const HubRevision& revision : revisions_) {
    if (const auto file = revision.files->find(etag)) return Blob{&revision, *file};
  }
  return std::nullopt;
}

const std::vector<HubFolder::Blob>& HubFolder::blobs() const {
  std::call_once(listed_, [this] {
    std::map<std::string_view, Blob> by_etag;
    for (const HubRevision& revision : revisions_) {
      for (const std::uint32_t file : revision.files->by_etag()) {
        by_etag.try_emplace(revision.files->etag(file), Blob{&revision, file});
      }
    }
    for (const auto& [etag, blob] : by_etag) blobs_.push_back(blob);
  });
  return blobs_;
}

HubFolders::HubFolders(const catalog::Catalog& catalog, PerSnapshot<HubFiles>& files) {
  const std::vector<Model> models = models_of_hubs(catalog);
  const auto add = [&](const Model& model, const Digest& key) {
    const SnapshotPtr found = catalog.snapshot(key);
    if (!found) return;
    // A revision from before the name got another source is of the repository that it was then.
    const catalog::Origin origin = model.origin(*found);
    const auto repository = snapshot::hub_reference_of(origin.source);
    auto listed = files.of(*found);
    if (!repository || !snapshot::is_git_id(origin.revision) || !listed->complete()) return;
    const bool shown = key == model.current;
    HubFolder& folder = all_[repository->cache_folder()];
    folder.add({.commit = origin.revision,
                .snapshot = found,
                .files = std::move(listed),
                .view = shown ? model.name : model.name + "@" + origin.revision});
    const HubReference now = *snapshot::hub_reference_of(model.source);
    if (shown && !now.is_commit() && now.cache_folder() == repository->cache_folder()) {
      folder.add_ref(now.revision, origin.revision);
    }
  };
  for (const Model& model : models) add(model, model.current);
  for (auto& [name, folder] : all_) folder.add_ref(kMain, folder.first().commit);
  for (const Model& model : models) {
    for (const Digest& key : model.revisions | std::views::reverse) {
      if (key != model.current) add(model, key);
    }
  }
}

const HubFolder* HubFolders::find(std::string_view name) const {
  const auto found = all_.find(name);
  return found == all_.end() ? nullptr : &found->second;
}

}  // namespace weightfs::vfs
