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
  if (by_commit_.contains(revision.snapshot->revision())) return;
  revisions_.push_back(std::move(revision));
  by_commit_.emplace(revisions_.back().snapshot->revision(), &revisions_.back());
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
  const auto add = [&](const Model& model, const SnapshotPtr& snapshot, const std::string& view) {
    // A revision from before the name got another source is of the repository that it was then.
    const auto origin = snapshot::hub_reference_of(snapshot->source());
    auto listed = files.of(*snapshot);
    if (!origin || !listed->complete()) return;
    HubFolder& folder = all_[origin->cache_folder()];
    folder.add({.snapshot = snapshot, .files = std::move(listed), .view = view});
    const HubReference now = *snapshot::hub_reference_of(model.source);
    const bool is_shown = view == model.name && now.cache_folder() == origin->cache_folder();
    if (is_shown && !now.is_commit()) folder.add_ref(now.revision, snapshot);
  };
  for (const Model& model : models) {
    if (const SnapshotPtr shown = catalog.snapshot(model.current)) add(model, shown, model.name);
  }
  for (auto& [name, folder] : all_) {
    folder.add_ref(kMain, folder.first().snapshot);
  }
  for (const Model& model : models) {
    for (const Digest& key : model.revisions | std::views::reverse) {
      const SnapshotPtr older = key == model.current ? nullptr : catalog.snapshot(key);
      if (older) add(model, older, model.name + "@" + older->revision());
    }
  }
}

const HubFolder* HubFolders::find(std::string_view name) const {
  const auto found = all_.find(name);
  return found == all_.end() ? nullptr : &found->second;
}

}  // namespace weightfs::vfs
