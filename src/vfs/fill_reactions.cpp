// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "vfs/fill_reactions.hpp"

#include "snapshot/reference.hpp"

#include <utility>

namespace weightfs::vfs {

using telemetry::EventKind;

telemetry::Event FillReactions::about_file(EventKind kind, const fetch::Target& target) const {
  telemetry::Event event = about(kind, *target.snapshot, target.file_index);
  event.name = catalog_.name_of(target.snapshot->key());
  return event;
}

void FillReactions::tell(EventKind kind, const char* action, const fetch::Target& target,
                         const std::string& reason) const {
  telemetry::Event event = about_file(kind, target);
  event.action = action;
  event.reason = reason;
  events_.put(std::move(event));
}

void FillReactions::on_begun(const fetch::Target& target, fetch::Place place,
                             std::uint64_t missing) {
  telemetry::Event event = about_file(EventKind::kFill, target);
  event.action = place == fetch::Place::kDisk ? "begin" : "stream";
  event.bytes = missing;
  events_.put(std::move(event));
}

void FillReactions::on_complete(const fetch::Target& target, const store::Blob& blob) {
  log_.info("{} of {} is complete ({} bytes, sha256 {})", target.file().path,
            snapshot::shown_source(target.snapshot->source()), blob.size, blob.digest.short_hex());
  if (!target.file().sha256) {
    try {
      catalog_.learn(target.snapshot->key(), target.file_index, blob.digest);
    } catch (const Error& error) {
      // The blob is there; the next fill of this file learns its digest again.
      log_.error("cannot record the digest of {}: {}", target.file().path, error.what());
    }
  }
  last_errors_.clear(target.key());
  incarnations_.prove(target.key());
  const bool listed = target.file().sha256.has_value();
  tell(EventKind::kVerification, listed ? "intact" : "learned", target,
       listed ? "as it was fetched" : "its listing had no digest");
  tell(EventKind::kFill, "complete", target);
}

std::optional<Digest> FillReactions::learned(const fetch::Target& target) const {
  const snapshot::SnapshotPtr known = catalog_.snapshot(target.snapshot->key());
  return known ? known->files()[target.file_index].sha256 : std::nullopt;
}

void FillReactions::on_shown(const fetch::Target& target, fetch::Place place) {
  try {
    incarnations_.show(target.key(), place);
  } catch (const Error& error) {
    log_.error("what was shown of {} is remembered by this daemon only: {}", target.file().path,
               error.what());
  }
}

void FillReactions::on_failed(const fetch::Target& target, const Error& error) {
  log_.warning("fill of {} of {} failed: {}", target.file().path,
               snapshot::shown_source(target.snapshot->source()), error.what());
  last_errors_.set(target.key(), error.what());
  if (error.code() == Errc::kCorrupt) {
    tell(EventKind::kVerification, "mismatch", target, error.what());
  }
  tell(EventKind::kFill, "failed", target, error.what());
}

void FillReactions::on_disowned(const fetch::Target& target) {
  try {
    incarnations_.retire(target.key());
  } catch (const Error& error) {
    log_.error("{} has a new node for this daemon only: {}", target.file().path, error.what());
  }
}

bool FillReactions::wanted(const fetch::Target& target) {
  // Of a model that is being added some files are read before it has its name.
  if (!catalog_.forgotten(target.snapshot->key())) return true;
  const store::PartialKey key = target.key();
  for (const snapshot::SnapshotPtr& snapshot : catalog_.snapshots()) {
    for (std::size_t i = 0; i < snapshot->files().size(); ++i) {
      const fetch::Target other{.snapshot = snapshot, .file_index = i, .source = nullptr};
      if (other.key() == key) return true;
    }
  }
  return false;
}

void FillReactions::on_loader(const fetch::Target& target) {
  if (fetch::Warmer* warmer = warmer_) {
    log_.info("a loader reads {}: fetching the rest of the snapshot",
              snapshot::shown_source(target.snapshot->source()));
    warmer->start(target.snapshot, target.source, fetch::Want::kFile);
  }
}

}  // namespace weightfs::vfs
