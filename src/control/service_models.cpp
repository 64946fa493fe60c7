// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/error.hpp"
#include "base/thread.hpp"
#include "control/file_content.hpp"
#include "control/residency.hpp"
#include "control/service.hpp"
#include "control/shard_index.hpp"
#include "snapshot/reference.hpp"

#include <fmt/format.h>

#include <sys/stat.h>
#include <chrono>
#include <utility>

namespace weightfs::control {

namespace {

/// A source below the mount itself would wait for the daemon that waits for it.
void refuse_own_mount(const snapshot::Reference& reference, const std::string& mountpoint) {
  if (reference.scheme() != snapshot::Scheme::kFile) return;
  struct stat source = {};
  struct stat mount = {};
  if (::stat(reference.locator().c_str(), &source) != 0) return;  // resolving will say why
  if (::stat(mountpoint.c_str(), &mount) != 0 || source.st_dev != mount.st_dev) return;
  throw Error(Errc::kInvalid,
              fmt::format("{} lies in the mount {} itself", reference.text(), mountpoint));
}

constexpr std::chrono::milliseconds kPoll{50};
constexpr std::chrono::seconds kLearning{10};

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
      .revision = snapshot->revision(),
      .snapshot = snapshot->id() ? snapshot->id()->hex() : "",
      .key = snapshot->key().hex(),
      .provisional = snapshot->provisional(),
      .bytes = snapshot->bytes(),
      .resident_bytes = resident.bytes,
      .complete = resident.complete,
      .confirmed = confirmed ? confirmed->revision() : "",
      .rollback = rollback_of(model),
      .pinned = model.pinned,
      .pin_reason = model.pin_reason,
      .file_count = snapshot->files().size(),
      .revisions = model.revisions.size(),
      .added = model.added,
      .updated = model.updated,
  };
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
  for (const std::size_t index : shard_indexes(*snapshot)) {
    job.report({.stage = "checking"});
    const fetch::Target target{.snapshot = snapshot, .file_index = index, .source = source};
    const std::string& path = target.file().path;
    const std::string content = file_content(parts_.fetcher, target, job.stop);
    if (const auto missing = missing_shard(*snapshot, path, content)) {
      throw Error(Errc::kInvalid, fmt::format("{} is incomplete: {} names {}, which is not there",
                                              source->describe(), path, *missing));
    }
  }
}

api::Model Service::add(const api::AddRequest& request, const Job& job) {
  catalog::check_name(request.name);
  const snapshot::Reference reference = snapshot::Reference::parse(request.source);
  const std::string& source_text = reference.text();
  if (const auto existing = parts_.catalog.find(request.name)) {
    if (existing->source == source_text) return summary(*existing);
    throw Error(Errc::kBusy,
                fmt::format("{} is there already, from {}; remove it first, or choose another name",
                            request.name, snapshot::shown_source(existing->source)));
  }
  refuse_own_mount(reference, parts_.mount.mount_info().mountpoint);
  const source::SourcePtr source = parts_.sources.get(source_text);
  const snapshot::SnapshotPtr snapshot = resolve(source, job);
  check_complete(snapshot, source, job);
  parts_.catalog.add(request.name, source_text, snapshot);
  tell(telemetry::EventKind::kAdd, require(request.name));
  return summary_of(request.name);
}

api::UpdateResult Service::update(const std::string& name, Staging staging, const Job& job) {
  const catalog::Model model = require(name);
  const std::string from = current(model)->revision();
  const source::SourcePtr source = parts_.sources.get(model.source);
  const snapshot::SnapshotPtr found = resolve(source, job);
  if (found->key() == model.current) {
    return {.name = name, .changed = false, .from = from, .to = from};
  }
  check_complete(found, source, job);
  // Staged before it is fetched, so that what is learned of it is kept.
  parts_.catalog.stage(name, found);
  const std::string way = fmt::format("from {} to {}", from, found->revision());
  tell(telemetry::EventKind::kUpdate,
       {.name = name, .source = model.source, .current = found->key()}, way);
  if (staging == Staging::kWarm && keeps()) fetch_all(found, source, job);
  parts_.catalog.flip(name, found);
  tell(telemetry::EventKind::kFlip, {.name = name, .source = model.source, .current = found->key()},
       way);
  return {.name = name, .changed = true, .from = from, .to = found->revision()};
}

api::UpdateResult Service::resource(const std::string& name, const std::string& source,
                                    const Job& job) {
  const std::string before = require(name).source;
  parts_.catalog.set_source(name, source);
  try {
    return update(name, Staging::kWarm, job);
  } catch (...) {
    parts_.catalog.set_source(name, before);
    throw;
  }
}

api::Model Service::confirm(const std::string& name) {
  parts_.catalog.confirm(name);
  tell(telemetry::EventKind::kConfirm, require(name));
  return summary_of(name);
}

api::UpdateResult Service::rollback(const std::string& name) {
  const std::string from = current(require(name))->revision();
  parts_.catalog.rollback(name);
  const catalog::Model model = require(name);
  const std::string to = current(model)->revision();
  tell(telemetry::EventKind::kRollback, model, fmt::format("from {} to {}", from, to));
  return {.name = name, .changed = true, .from = from, .to = to};
}

void Service::fetch_all(const snapshot::SnapshotPtr& snapshot, const source::SourcePtr& source,
                        const Job& job) const {
  const auto wait = [&] {
    if (!pause(job.stop, kPoll)) throw Error(Errc::kCancelled, "the daemon is stopping");
  };
  parts_.cache.admit(snapshot);
  parts_.warmer.start(snapshot, source, fetch::Want::kBackground);
  for (;; wait()) {
    const auto warm = parts_.warmer.progress(snapshot->key());
    if (!warm) throw Error(Errc::kCancelled, "how the fetching went is not known any more");
    job.report({.stage = "fetching", .bytes = warm->written, .total = warm->bytes});
    if (warm->running) continue;
    if (warm->error) throw Error(*warm->error);
    if (warm->files_complete == warm->files) break;
    throw Error(Errc::kNotReady, "the fetching was stopped before all was there");
  }
  // What was learned is written down just after the last byte has come.
  const auto deadline = std::chrono::steady_clock::now() + kLearning;
  while (std::chrono::steady_clock::now() < deadline) {
    const auto learned = parts_.catalog.snapshot(snapshot->key());
    if (!learned || !learned->provisional()) return;
    wait();
  }
}

}  // namespace weightfs::control
