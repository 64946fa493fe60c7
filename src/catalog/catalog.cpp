// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "catalog/catalog.hpp"

#include "base/error.hpp"
#include "catalog/catalog_state.hpp"

#include <algorithm>
#include <utility>

namespace weightfs::catalog {

namespace {

using snapshot::Snapshot;
using snapshot::SnapshotPtr;

/// Writes the snapshot, and where the name found it.
void keep(CatalogState& state, Model& model, const SnapshotPtr& snapshot) {
  state.keep(snapshot);
  model.origins.erase(snapshot->key());
  const SnapshotPtr kept = state.snapshot(snapshot->key());
  const Origin origin{snapshot->source(), snapshot->revision()};
  if (model.origin(*kept) != origin) model.origins[snapshot->key()] = origin;
}

}  // namespace

Catalog::Catalog(std::filesystem::path state_directory, const Clock& clock, Log log)
    : state_(std::make_unique<CatalogState>(state_directory, clock, log)),
      leases_(std::make_unique<Leases>(state_directory / "leases.json", clock, log)) {
}

Catalog::~Catalog() = default;

void Catalog::add(const std::string& name, const std::string& source, const SnapshotPtr& snapshot) {
  check_name(name);
  state_->update_models([&](Models& models, Models& lost) {
    if (models.contains(name)) throw Error(Errc::kBusy, "the name " + name + " is taken");
    check_conflicts(models, name);
    Model model;
    keep(*state_, model, snapshot);
    model.name = name;
    model.source = source;
    model.current = snapshot->key();
    model.revisions = {snapshot->key()};
    model.added = model.updated = state_->now();
    if (const auto before = lost.extract(name)) {
      model.pin = before.mapped().pin;
      model.added = before.mapped().added;
    }
    models.emplace(name, std::move(model));
  });
}

void Catalog::remove(const std::string& name) {
  state_->update_models([&](Models& models, Models& lost) {
    if (lost.erase(name) > 0) return;
    require(models, name);
    models.erase(name);
  });
}

void Catalog::stage(const std::string& name, const SnapshotPtr& snapshot) {
  state_->update_models([&](Models& models, Models&) {
    Model& model = require(models, name);
    keep(*state_, model, snapshot);
    if (std::ranges::find(model.revisions, snapshot->key()) == model.revisions.end()) {
      model.revisions.push_back(snapshot->key());
    }
  });
}

void Catalog::flip(const std::string& name, const SnapshotPtr& snapshot) {
  state_->update_models([&](Models& models, Models&) {
    Model& model = require(models, name);
    keep(*state_, model, snapshot);
    if (!model.confirmed && model.current != snapshot->key()) model.confirmed = model.current;
    model.current = snapshot->key();
    std::erase(model.revisions, snapshot->key());
    model.revisions.push_back(snapshot->key());
    model.updated = state_->now();
  });
}

void Catalog::confirm(const std::string& name) {
  state_->update_models([&](Models& models, Models&) {
    Model& model = require(models, name);
    model.confirmed = model.current;
  });
}

std::vector<std::string> Catalog::confirm_since(std::int64_t then) {
  const auto is_due = [then](const Model& model) {
    return model.updated <= then && model.confirmed != model.current;
  };
  std::vector<std::string> names;
  for (const Model& model : list()) {
    if (is_due(model)) names.push_back(model.name);
  }
  if (names.empty()) return names;
  state_->update_models([&](Models& models, Models&) {
    std::erase_if(names, [&](const std::string& name) {
      const auto found = models.find(name);
      if (found == models.end() || !is_due(found->second)) return true;
      found->second.confirmed = found->second.current;
      return false;
    });
  });
  return names;
}

void Catalog::rollback(const std::string& name) {
  state_->update_models([&](Models& models, Models&) {
    Model& model = require(models, name);
    if (!model.confirmed) throw Error(Errc::kNotReady, name + " has shown one revision only");
    if (model.confirmed == model.current) {
      throw Error(Errc::kNotReady, name + " shows its last confirmed revision already");
    }
    model.current = *model.confirmed;
    model.updated = state_->now();
  });
}

void Catalog::set_declared(const std::string& name, bool declared) {
  state_->update_models(
      [&](Models& models, Models&) { require(models, name).declared = declared; });
}

void Catalog::set_source(const std::string& name, const std::string& source) {
  state_->update_models([&](Models& models, Models&) { require(models, name).source = source; });
}

void Catalog::forget(const std::string& name, const std::vector<Digest>& revisions) {
  state_->update_models([&](Models& models, Models&) {
    Model& model = require(models, name);
    std::erase_if(model.revisions, [&](const Digest& key) {
      return key != model.current && model.confirmed != key &&
             std::ranges::find(revisions, key) != revisions.end();
    });
    std::erase_if(model.origins, [&](const auto& entry) {
      return std::ranges::find(model.revisions, entry.first) == model.revisions.end();
    });
  });
}

void Catalog::pin(const std::string& name, const Pin& pin) {
  state_->update_models([&](Models& models, Models&) { require(models, name).pin = pin; });
}

void Catalog::unpin(const std::string& name) {
  state_->update_models([&](Models& models, Models&) { require(models, name).pin.reset(); });
}

void Catalog::consider(const SnapshotPtr& snapshot, const std::string& name) {
  state_->consider(snapshot, name);
}

void Catalog::dismiss(const Digest& snapshot_key) {
  state_->dismiss(snapshot_key);
}

void Catalog::learn(const Digest& snapshot_key, std::size_t file_index, const Digest& sha256) {
  state_->learn(snapshot_key, file_index, sha256);
}

std::optional<Model> Catalog::find(const std::string& name) const {
  return state_->read([&](const Tables& tables) -> std::optional<Model> {
    const auto found = tables.models.find(name);
    if (found == tables.models.end()) return std::nullopt;
    return found->second.at(state_->now());
  });
}

std::vector<Model> Catalog::list() const {
  return state_->read([now = state_->now()](const Tables& tables) {
    std::vector<Model> all;
    for (const auto& [name, model] : tables.models) all.push_back(model.at(now));
    return all;
  });
}

std::vector<Model> Catalog::lost() const {
  return state_->read([](const Tables& tables) {
    std::vector<Model> all;
    for (const auto& [name, model] : tables.lost) all.push_back(model);
    return all;
  });
}

SnapshotPtr Catalog::snapshot(const Digest& key) const {
  return state_->snapshot(key);
}

SnapshotPtr Catalog::snapshot_by_id(const Digest& id) const {
  return state_->read([&](const Tables& tables) -> SnapshotPtr {
    const auto key = tables.keys_by_id.find(id);
    if (key == tables.keys_by_id.end()) return nullptr;
    const auto found = tables.snapshots.find(key->second);
    return found == tables.snapshots.end() ? nullptr : found->second;
  });
}

SnapshotPtr Catalog::revision(const std::string& name, std::string_view text) const {
  if (text.empty()) return nullptr;
  return state_->read([&](const Tables& tables) -> SnapshotPtr {
    const auto model = tables.models.find(name);
    if (model == tables.models.end()) return nullptr;
    SnapshotPtr match;
    for (const Digest& key : model->second.revisions) {
      const auto found = tables.snapshots.find(key);
      if (found == tables.snapshots.end() || !names_revision(model->second, *found->second, text))
        continue;
      const bool same_bytes = match && match->id() && match->id() == found->second->id();
      if (match && !same_bytes) return nullptr;  // ambiguous
      match = found->second;
    }
    return match;
  });
}

std::string Catalog::name_of(const Digest& snapshot_key) const {
  return state_->read([&](const Tables& tables) {
    const std::string* known = nullptr;
    for (const auto& [name, model] : tables.models) {
      if (model.current == snapshot_key) return name;
      if (std::ranges::find(model.revisions, snapshot_key) != model.revisions.end()) known = &name;
    }
    if (known != nullptr) return *known;
    const auto candidate = tables.candidates.find(snapshot_key);
    return candidate == tables.candidates.end() ? std::string() : candidate->second;
  });
}

bool Catalog::pinned(const Digest& snapshot_key) const {
  return state_->read([&, now = state_->now()](const Tables& tables) {
    return std::ranges::any_of(tables.models, [&](const auto& entry) {
      return entry.second.pinned(now) && entry.second.current == snapshot_key;
    });
  });
}

bool Catalog::rolled_back_to(const Digest& snapshot_key, std::int64_t then) const {
  return state_->read([&](const Tables& tables) {
    return std::ranges::any_of(tables.models, [&](const auto& entry) {
      const Model& model = entry.second;
      return model.confirmed == snapshot_key && model.current != snapshot_key &&
             model.updated >= then;
    });
  });
}

std::vector<Child> Catalog::children(std::string_view path) const {
  return state_->read([&](const Tables& tables) {
    std::vector<Child> all;
    const std::size_t skip = path.empty() ? 0 : path.size() + 1;
    for (auto it = first_below(tables.models, path);
         it != tables.models.end() && is_below(path, it->first); ++it) {
      const std::string_view rest = std::string_view(it->first).substr(skip);
      const std::string_view component = rest.substr(0, rest.find('/'));
      if (!all.empty() && all.back().component == component) continue;
      all.push_back({std::string(component), component.size() == rest.size()});
    }
    return all;
  });
}

bool Catalog::is_namespace(std::string_view path) const {
  return state_->read([&](const Tables& tables) {
    const auto it = first_below(tables.models, path);
    return it != tables.models.end() && is_below(path, it->first);
  });
}

bool Catalog::forgotten(const Digest& snapshot_key) const {
  return state_->read(
      [&](const Tables& tables) { return tables.forgotten.contains(snapshot_key); });
}

std::vector<SnapshotPtr> Catalog::snapshots() const {
  return state_->snapshots();
}

std::uint64_t Catalog::generation() const noexcept {
  return state_->generation();
}

std::uint64_t Catalog::changes() const noexcept {
  return state_->changes();
}

}  // namespace weightfs::catalog
