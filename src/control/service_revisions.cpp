// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/error.hpp"
#include "base/thread.hpp"
#include "control/service.hpp"
#include "snapshot/pinned_reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace weightfs::control {

namespace {

constexpr std::chrono::milliseconds kPoll{50};
constexpr std::chrono::seconds kLearning{10};

std::string named(const snapshot::Snapshot& snapshot) {
  return snapshot.id() ? fmt::format("snapshot {}", snapshot.id()->hex())
                       : fmt::format("the provisional snapshot {}", snapshot.key().hex());
}

}  // namespace

/// Known to the catalog for as long as this lives.
Service::Candidate::Candidate(catalog::Catalog& catalog, const snapshot::SnapshotPtr& snapshot,
                              const std::string& name)
    : catalog_(catalog), key_(snapshot->key()) {
  catalog_.consider(snapshot, name);
}

Service::Candidate::~Candidate() {
  catalog_.dismiss(key_);
}

/// Of a source alone nobody knows what it has tomorrow.
void Service::require_immutable(const snapshot::PinnedReference& reference) const {
  if (!parts_.require_digest || reference.fixed()) return;
  throw Error(
      Errc::kInvalid,
      fmt::format("{} may have something else tomorrow, and require_digest is set: name the "
                  "snapshot (SOURCE@REVISION, or --expect)",
                  snapshot::shown_source(reference.source.text())));
}

bool Service::is_wanted(const snapshot::Snapshot& snapshot, const Wanted& wanted) const {
  if (parts_.require_digest && snapshot.provisional()) return false;
  const auto& [revision, id] = wanted;
  return (!revision || snapshot.key() == revision || snapshot.id() == revision) &&
         (!id || snapshot.id() == id);
}

void Service::check_identity(const snapshot::SnapshotPtr& found, const source::SourcePtr& source,
                             const Wanted& wanted, const Job& job) {
  if (is_wanted(*found, wanted)) return;
  const auto word = wanted.id ? wanted.id : wanted.revision;
  if (!word) {
    throw Error(Errc::kInvalid,
                fmt::format("{} has no digests, so what it has may change, and require_digest is "
                            "set: name the snapshot (SOURCE@REVISION, --expect), or have the "
                            "source list digests (weightfs manifest)",
                            source->describe()));
  }
  snapshot::SnapshotPtr known = found;
  if (found->provisional()) {
    // What it is shows when every byte is here.
    if (!keeps()) {
      throw Error(Errc::kUnsupported,
                  fmt::format("{} has no digests, and nothing is kept here to compute them: have "
                              "the source list them (weightfs manifest)",
                              source->describe()));
    }
    fetch_all(found, source, job);
    known = parts_.catalog.snapshot(found->key());
    if (known && is_wanted(*known, wanted)) return;
    discard(known ? known : found);
  }
  throw Error(Errc::kChanged, fmt::format("{} has {} now, not {}", source->describe(),
                                          named(known ? *known : *found), word->hex()));
}

/// Takes what was fetched of a snapshot that no name has out of the store.
void Service::discard(const snapshot::SnapshotPtr& snapshot) {
  Snapshots others;
  for (const catalog::Model& model : parts_.catalog.list()) {
    std::ranges::copy(snapshots_of(model, Scope::kAllRevisions), std::back_inserter(others));
  }
  const auto has_it = [&](const auto& other) { return other->key() == snapshot->key(); };
  if (std::ranges::any_of(others, has_it)) return;
  parts_.warmer.stop(snapshot->key());
  discard_partials({snapshot}, others);
  (void)release({snapshot}, digests_of(others), DryRun::kNo);
  parts_.cache.stock_changed();
}

api::UpdateResult Service::update(const std::string& name, const UpdateHow& how, const Job& job) {
  const catalog::Model model = require(name);
  const snapshot::SnapshotPtr shown = current(model);
  const std::string from = model.origin(*shown).revision;
  const auto reference = snapshot::PinnedReference::parse(model.source);
  const Wanted wanted{.revision = reference.revision, .id = expected_id(how.expect)};
  if (!wanted.id) require_immutable(reference);
  const source::SourcePtr source = parts_.sources.get(reference.source.text());
  const snapshot::SnapshotPtr found = resolve(source, job);
  const bool anything = !wanted.revision && !wanted.id;
  if (found->key() == model.current && (anything || is_wanted(*shown, wanted))) {
    // The same files in another commit, or another repository.
    const catalog::Origin origin{.source = found->source(), .revision = found->revision()};
    if (origin != model.origin(*shown)) parts_.catalog.stage(name, found);
    return {.name = name, .changed = false, .from = from, .to = found->revision()};
  }
  const Candidate candidate(parts_.catalog, found, name);
  if (how.missing == Missing::kRefused) check_complete(found, source, job);
  check_identity(found, source, wanted, job);
  // Staged before it is fetched, so that what is learned of it is kept.
  parts_.catalog.stage(name, found);
  const std::string way = fmt::format("from {} to {}", from, found->revision());
  const catalog::Model staged{.name = name, .source = model.source, .current = found->key()};
  tell(telemetry::EventKind::kUpdate, staged, way);
  if (how.staging == Staging::kWarm && keeps()) fetch_all(found, source, job);
  const std::string loader = flip(name, found, how.flip, job);
  tell(telemetry::EventKind::kFlip, staged, way);
  return {.name = name, .changed = true, .from = from, .to = found->revision(), .loader = loader};
}

api::UpdateResult Service::resource(const api::AddRequest& request, const Job& job) {
  const std::string before = require(request.name).source;
  parts_.catalog.set_source(request.name, snapshot::PinnedReference::parse(request.source).text());
  try {
    return update(request.name,
                  {.missing = request.allow_missing ? Missing::kAllowed : Missing::kRefused,
                   .expect = request.expect},
                  job);
  } catch (...) {
    parts_.catalog.set_source(request.name, before);
    throw;
  }
}

api::Model Service::confirm(const std::string& name) {
  parts_.catalog.confirm(name);
  tell(telemetry::EventKind::kConfirm, require(name));
  return summary_of(name);
}

api::UpdateResult Service::rollback(const std::string& name) {
  const catalog::Model before = require(name);
  const snapshot::SnapshotPtr shown = current(before);
  const std::string from = before.origin(*shown).revision;
  const FlipOutcome outcome = parts_.mount.flip(name, shown->key(), Loaders::kIgnored,
                                                [&] { parts_.catalog.rollback(name); });
  const catalog::Model model = require(name);
  const std::string to = model.origin(*current(model)).revision;
  tell(telemetry::EventKind::kRollback, model, fmt::format("from {} to {}", from, to));
  return {.name = name, .changed = true, .from = from, .to = to, .loader = outcome.loader};
}

/// Returns who was loading through the name all the same.
std::string Service::flip(const std::string& name, const snapshot::SnapshotPtr& to, Flip how,
                          const Job& job) {
  const auto patience = how == Flip::kNow ? std::chrono::milliseconds(0) : parts_.flip_wait;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const Digest from = require(name).current;
    if (from == to->key()) return "";  // another update was faster, by --now
    const bool over = std::chrono::steady_clock::now() >= deadline;
    const FlipOutcome outcome =
        parts_.mount.flip(name, from, over ? Loaders::kIgnored : Loaders::kRespected,
                          [&] { parts_.catalog.flip(name, to); });
    if (outcome.flipped) return outcome.loader;
    job.report({.stage = "waiting for a loader"});
    if (!pause(job.stop, kPoll)) throw Error(Errc::kCancelled, "the daemon is stopping");
  }
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
