// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/error.hpp"
#include "control/file_content.hpp"
#include "control/required_files.hpp"
#include "control/residency.hpp"
#include "control/service.hpp"
#include "control/shard_index.hpp"
#include "snapshot/pinned_reference.hpp"
#include "snapshot/reference.hpp"
#include "snapshot/release.hpp"

#include <fmt/format.h>

#include <sys/stat.h>
#include <utility>

namespace weightfs::control {

namespace {

/// A source below the mount itself would wait for the daemon that waits for it.
void refuse_own_mount(const snapshot::Reference& reference, const std::string& mountpoint) {
  if (reference.scheme() == snapshot::Scheme::kRelease) {
    const auto release = snapshot::Release::parse(reference.text());
    for (const snapshot::ReleasePart& part : release.parts()) {
      for (const snapshot::Reference& source : part.sources) refuse_own_mount(source, mountpoint);
    }
  }
  if (reference.scheme() != snapshot::Scheme::kFile) return;
  struct stat source = {};
  struct stat mount = {};
  if (::stat(reference.locator().c_str(), &source) != 0) return;  // resolving will say why
  if (::stat(mountpoint.c_str(), &mount) != 0 || source.st_dev != mount.st_dev) return;
  throw Error(Errc::kInvalid,
              fmt::format("{} lies in the mount {} itself", reference.text(), mountpoint));
}

}  // namespace

catalog::Model Service::require(const std::string& name) const {
  if (auto model = parts_.catalog.find(name)) return *std::move(model);
  throw Error(Errc::kNotFound, fmt::format("no model has the name {}", name));
}

snapshot::SnapshotPtr Service::current(const catalog::Model& model) const {
  if (auto snapshot = parts_.catalog.snapshot(model.current)) return snapshot;
  // Removed, or moved on, since the model was looked up.
  throw Error(Errc::kNotFound, fmt::format("{} has just changed", model.name));
}

Service::Snapshots Service::snapshots_of(const catalog::Model& model, Scope scope) const {
  if (scope == Scope::kCurrent) return {current(model)};
  Snapshots all;
  for (const Digest& key : model.revisions) {
    if (auto snapshot = parts_.catalog.snapshot(key)) all.push_back(std::move(snapshot));
  }
  return all;
}

api::Model Service::summary(const catalog::Model& model) const {
  const snapshot::SnapshotPtr snapshot = current(model);
  const Residency resident = residency(parts_.store, parts_.fetcher, snapshot);
  const auto confirmed = model.confirmed ? parts_.catalog.snapshot(*model.confirmed) : nullptr;
  return {
      .name = model.name,
      .source = snapshot::shown_source(model.source),
      .revision = model.origin(*snapshot).revision,
      .snapshot = snapshot->id() ? snapshot->id()->hex() : "",
      .key = snapshot->key().hex(),
      .provisional = snapshot->provisional(),
      .bytes = snapshot->bytes(),
      .resident_bytes = resident.bytes,
      .complete = resident.complete,
      .confirmed = confirmed ? model.origin(*confirmed).revision : "",
      .rollback = rollback_of(model),
      .pinned = model.pin.has_value(),
      .pin_reason = model.pin ? model.pin->reason : "",
      .pin_owner = model.pin ? model.pin->owner : "",
      .pin_until = model.pin ? model.pin->until : 0,
      .file_count = snapshot->files().size(),
      .revisions = model.revisions.size(),
      .known_revisions = known_revisions(model),
      .added = model.added,
      .updated = model.updated,
  };
}

std::vector<api::Revision> Service::known_revisions(const catalog::Model& model) const {
  std::vector<api::Revision> all;
  for (const auto& snapshot : snapshots_of(model, Scope::kAllRevisions)) {
    all.push_back({.revision = model.origin(*snapshot).revision,
                   .snapshot = snapshot->id() ? snapshot->id()->hex() : "",
                   .key = snapshot->key().hex(),
                   .reference = snapshot::shown_reference(*snapshot),
                   .current = snapshot->key() == model.current,
                   .confirmed = snapshot->key() == model.confirmed});
  }
  return all;
}

std::string Service::rollback_of(const catalog::Model& model) const {
  if (!model.confirmed || model.confirmed == model.current) return "";
  const snapshot::SnapshotPtr back = parts_.catalog.snapshot(*model.confirmed);
  if (!back) return "";
  return residency(parts_.store, parts_.fetcher, back).complete ? "ready" : "cold";
}

api::Model Service::summary_of(const std::string& name) const {
  return summary(require(name));
}

std::vector<api::Model> Service::models() {
  std::vector<api::Model> all;
  for (const catalog::Model& model : parts_.catalog.list()) {
    try {
      all.push_back(summary(model));
    } catch (const Error& error) {
      if (error.code() != Errc::kNotFound) throw;  // removed while we list
    }
  }
  return all;
}

api::ModelDetail Service::model(const std::string& name) {
  const catalog::Model model = require(name);
  const snapshot::SnapshotPtr snapshot = current(model);
  api::ModelDetail detail{.model = summary(model), .files = {}};
  for (std::size_t i = 0; i < snapshot->files().size(); ++i) {
    const snapshot::File& file = snapshot->files()[i];
    const Residency resident =
        residency(parts_.store, parts_.fetcher, {.snapshot = snapshot, .file_index = i});
    detail.files.push_back({.path = file.path,
                            .size = file.size,
                            .sha256 = file.sha256 ? file.sha256->hex() : "",
                            .resident_bytes = resident.bytes,
                            .complete = resident.complete});
  }
  return detail;
}

snapshot::SnapshotPtr Service::resolve(const source::SourcePtr& source, const Job& job) const {
  job.report({.stage = "resolving"});
  return std::make_shared<const snapshot::Snapshot>(source->resolve(job.stop));
}

void Service::check_complete(const snapshot::SnapshotPtr& snapshot, const source::SourcePtr& source,
                             const Job& job) const {
  if (const auto missing = missing_file(snapshot, source, job)) {
    throw Error(Errc::kInvalid,
                fmt::format("{} is incomplete: {} (--allow-missing takes it as it is)",
                            source->describe(), *missing));
  }
}

/// A sentence about the first file that loaders will ask for in vain.
std::optional<std::string> Service::missing_file(const snapshot::SnapshotPtr& snapshot,
                                                 const source::SourcePtr& source,
                                                 const Job& job) const {
  const auto content = [&](std::size_t index) {
    job.report({.stage = "checking"});
    return file_content(parts_.fetcher,
                        {.snapshot = snapshot, .file_index = index, .source = source}, job.stop);
  };
  if (const auto config = missing_config(*snapshot)) {
    return fmt::format("weights without {}, which is not there", *config);
  }
  for (const std::size_t index : shard_indexes(*snapshot)) {
    const std::string& path = snapshot->files()[index].path;
    if (const auto missing = missing_shard(*snapshot, path, content(index))) {
      return fmt::format("{} names {}, which is not there", path, *missing);
    }
  }
  const auto config = config_without_tokenizer(*snapshot);
  if (config && needs_tokenizer(content(*config))) {
    return fmt::format("a tokenizer, which {} asks for, is not there",
                       snapshot->files()[*config].path);
  }
  return std::nullopt;
}

std::optional<Digest> Service::expected_id(const std::string& text) {
  if (text.empty()) return std::nullopt;
  if (auto id = Digest::parse(text)) return id;
  throw Error(Errc::kInvalid, "the id of a snapshot is 64 hexadecimal digits");
}

api::Model Service::add(const api::AddRequest& request, const Job& job) {
  catalog::check_name(request.name);
  const auto reference = snapshot::PinnedReference::parse(request.source);
  const std::string source_text = reference.text();
  const Wanted wanted{.revision = reference.revision, .id = expected_id(request.expect)};
  if (const auto existing = parts_.catalog.find(request.name)) {
    const bool same = !wanted.id || current(*existing)->id() == wanted.id;
    if (existing->source == source_text && same) return summary(*existing);
    throw Error(
        Errc::kBusy,
        fmt::format("{} is there already, from {}{}; remove it first, or choose another name",
                    request.name, snapshot::shown_source(existing->source),
                    same ? "" : ", as another snapshot"));
  }
  if (!wanted.id) require_immutable(reference);
  refuse_own_mount(reference.source, parts_.mount.mount_info().mountpoint);
  const source::SourcePtr source = parts_.sources.get(reference.source.text());
  const snapshot::SnapshotPtr snapshot = resolve(source, job);
  const Candidate candidate(parts_.catalog, snapshot, request.name);
  if (!request.allow_missing) check_complete(snapshot, source, job);
  check_identity(snapshot, source, wanted, job);
  parts_.catalog.add(request.name, source_text, snapshot);
  tell(telemetry::EventKind::kAdd, require(request.name));
  return summary_of(request.name);
}

}  // namespace weightfs::control
