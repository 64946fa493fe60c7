// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/error.hpp"
#include "base/timestamp.hpp"
#include "control/service.hpp"
#include "snapshot/byte_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <thread>
#include <utility>

namespace weightfs::control {

namespace {

/// For fills to close that nobody wants any more: a flush of what they hold.
constexpr std::chrono::seconds kClosingPatience{10};
constexpr std::chrono::milliseconds kClosingPause{10};

void refuse_pinned(const catalog::Model& model) {
  if (!model.pin) return;
  std::string how;
  if (!model.pin->owner.empty()) how += " by " + model.pin->owner;
  if (model.pin->until != 0) how += " until " + show_timestamp(model.pin->until);
  if (!model.pin->reason.empty()) how += fmt::format(" ({})", model.pin->reason);
  throw Error(Errc::kBusy, fmt::format("{} is pinned{}; 'weightfs unpin {}' first", model.name, how,
                                       model.name));
}

}  // namespace

/// Error(kIo) where none of it can be written to, nor emptied.
void Service::require_store(const std::string& otherwise) const {
  const bool wanted = parts_.fetcher.keep() == fetch::Keep::kStore;
  if (parts_.store.writable() || !wanted) return;
  throw Error(Errc::kIo, fmt::format("{}: {}", otherwise, parts_.store.trouble()));
}

std::set<Digest> Service::digests_of(const Snapshots& snapshots) {
  std::set<Digest> digests;
  for (const auto& snapshot : snapshots) {
    for (const snapshot::File& file : snapshot->files()) {
      if (file.sha256) digests.insert(*file.sha256);
    }
  }
  return digests;
}

/// Removes the blobs of `snapshots` but for those in `kept`, and counts both.
api::Freed Service::release(const Snapshots& snapshots, const std::set<Digest>& kept,
                            DryRun dry_run) {
  std::map<Digest, std::uint64_t> resident;
  for (const auto& snapshot : snapshots) {
    for (const snapshot::File& file : snapshot->files()) {
      if (file.sha256 && parts_.store.contains(*file.sha256, file.size)) {
        resident[*file.sha256] = file.size;
      }
    }
  }
  api::Freed freed{.dry_run = dry_run == DryRun::kYes};
  for (const auto& [digest, size] : resident) {
    if (kept.contains(digest)) {
      ++freed.shared_blobs;
      freed.shared_bytes += size;
    } else if (dry_run == DryRun::kYes) {
      ++freed.blobs;
      freed.bytes += size;
    } else {
      const std::uint64_t bytes = parts_.store.remove(digest);
      parts_.mount.blob_gone(digest);
      if (bytes == 0 && size > 0) continue;  // somebody else was faster
      ++freed.blobs;
      freed.bytes += bytes;
    }
  }
  return freed;
}

/// Throws away what was fetched of files that are not complete and that `kept` has not. A fill that
/// nobody wants any more closes a moment later, and is waited for; one that somebody reads keeps
/// its bytes until it closes (fetch::FillObserver::wanted).
void Service::discard_partials(const Snapshots& snapshots, const Snapshots& kept) {
  std::set<Digest> keys_kept;
  for (const auto& snapshot : kept) {
    for (std::size_t i = 0; i < snapshot->files().size(); ++i) {
      keys_kept.insert(
          fetch::Target{.snapshot = snapshot, .file_index = i, .source = nullptr}.key());
    }
  }
  std::map<Digest, snapshot::File> partial;
  for (const auto& snapshot : snapshots) {
    for (std::size_t i = 0; i < snapshot->files().size(); ++i) {
      const fetch::Target target{.snapshot = snapshot, .file_index = i, .source = nullptr};
      const snapshot::File& file = target.file();
      const bool complete = file.sha256 && parts_.store.contains(*file.sha256, file.size);
      if (!complete && !keys_kept.contains(target.key())) partial.emplace(target.key(), file);
    }
  }
  const auto deadline = std::chrono::steady_clock::now() + kClosingPatience;
  while (!partial.empty()) {
    std::map<Digest, snapshot::File> closing;
    for (const fetch::FillPtr& fill : parts_.fetcher.fills()) {
      const auto node = partial.extract(fill->target().key());
      if (node && fill->progress().holders == 0) closing.emplace(node.key(), node.mapped());
    }
    for (const auto& [key, file] : partial) {
      if (!discard_partial(key, file)) closing.emplace(key, file);
    }
    if (std::chrono::steady_clock::now() >= deadline) return;
    partial = std::move(closing);
    if (!partial.empty()) std::this_thread::sleep_for(kClosingPause);
  }
}

/// False while somebody fills it.
bool Service::discard_partial(const Digest& key, const snapshot::File& file) {
  // Without a digest the bytes were all of one version, by its validator.
  if (file.sha256 && parts_.store.partial_bytes(key) > 0) parts_.mount.bytes_discarded(key);
  try {
    parts_.store.discard_partial(key);
    return true;
  } catch (const Error& error) {
    if (error.code() != Errc::kBusy) throw;
    return false;
  }
}

api::Freed Service::remove(const std::string& name, DryRun dry_run) {
  const catalog::Model model = require(name);
  refuse_pinned(model);
  const Snapshots removed = snapshots_of(model, Scope::kAllRevisions);
  Snapshots others;
  for (const catalog::Model& other : parts_.catalog.list()) {
    if (other.name == name) continue;
    std::ranges::copy(snapshots_of(other, Scope::kAllRevisions), std::back_inserter(others));
  }
  Snapshots last = removed;  // those that go with this name
  std::erase_if(last, [&](const auto& snapshot) {
    return std::ranges::any_of(others, [&](const auto& o) { return o->key() == snapshot->key(); });
  });
  refuse_leased(model, last);
  if (dry_run == DryRun::kNo) {
    parts_.catalog.remove(name);
    for (const auto& snapshot : removed) {
      if (parts_.catalog.snapshot(snapshot->key())) continue;  // another name has it
      parts_.warmer.stop(snapshot->key());
    }
    discard_partials(removed, others);
  }
  api::Freed freed = release(removed, digests_of(others), dry_run);
  if (dry_run == DryRun::kNo) {
    parts_.cache.stock_changed();
    tell_freed(telemetry::EventKind::kRemove, model, freed.bytes, "");
  }
  freed.name = name;
  return freed;
}

api::Freed Service::evict(const std::string& name, Shared shared, DryRun dry_run) {
  const catalog::Model model = require(name);
  refuse_pinned(model);
  require_store(fmt::format("{} cannot be evicted", name));
  const Snapshots evicted = snapshots_of(model, Scope::kCurrent);
  refuse_leased(model, evicted);
  Snapshots kept = leased();
  // What the name would be rolled back to stays complete: that needs no network.
  if (model.confirmed && model.confirmed != model.current && shared == Shared::kKeep) {
    if (auto confirmed = parts_.catalog.snapshot(*model.confirmed)) {
      kept.push_back(std::move(confirmed));
    }
  }
  for (const catalog::Model& other : parts_.catalog.list()) {
    if (other.name == name) continue;
    if (shared == Shared::kKeep) {
      // An old revision, too: its source may not have it any more.
      std::ranges::copy(snapshots_of(other, Scope::kAllRevisions), std::back_inserter(kept));
    } else if (other.pin) {
      std::ranges::copy(snapshots_of(other, Scope::kCurrent), std::back_inserter(kept));
    }
  }
  if (dry_run == DryRun::kNo) {
    // A warm would bring back what is taken away; another model's of the same snapshot goes on.
    const bool same = std::ranges::any_of(
        kept, [&](const auto& snapshot) { return snapshot->key() == model.current; });
    if (!same) parts_.warmer.stop(model.current);
    discard_partials(evicted, kept);
  }
  api::Freed freed = release(evicted, digests_of(kept), dry_run);
  if (dry_run == DryRun::kNo) {
    parts_.cache.stock_changed();
    tell_freed(telemetry::EventKind::kEviction, model, freed.bytes, "asked for");
  }
  freed.name = name;
  return freed;
}

api::Progress Service::warm(const std::string& name) {
  const catalog::Model model = require(name);
  require_store(fmt::format("{} cannot be warmed", name));
  if (!keeps()) {
    throw Error(Errc::kUnsupported, fmt::format("{} cannot be warmed: nothing is kept with mode {}",
                                                name, cache::name(parts_.cache.mode())));
  }
  const snapshot::SnapshotPtr snapshot = current(model);
  parts_.cache.admit(snapshot);
  const api::Progress before = progress(name);
  if (before.complete) return before;
  parts_.warmer.start(snapshot, parts_.sources.get(snapshot->source()), fetch::Want::kBackground);
  api::Progress now = progress(name);
  now.error.reset();  // of a warm before this one
  now.running = !now.complete;
  return now;
}

std::int64_t Service::now() const {
  return std::chrono::duration_cast<std::chrono::seconds>(parts_.clock.wall().time_since_epoch())
      .count();
}

catalog::Pin Service::read_pin(const api::PinRequest& request) const {
  // They stand in JSON on the disk.
  if (!snapshot::is_utf8(request.reason) || !snapshot::is_utf8(request.owner)) {
    throw Error(Errc::kInvalid, "the reason and the owner of a pin must be UTF-8");
  }
  catalog::Pin pin{.reason = request.reason, .owner = request.owner};
  if (request.until.empty()) return pin;
  pin.until = parse_timestamp(request.until);
  if (pin.until <= 0 || !pin.holds(now())) {
    throw Error(Errc::kInvalid, fmt::format("{} is over already", show_timestamp(pin.until)));
  }
  return pin;
}

api::Model Service::pin(const std::string& name, const api::PinRequest& request) {
  const catalog::Pin pin = read_pin(request);
  // One that cannot fit is not pinned either.
  reserving_.with([&](Reserving&) {
    if (keeps()) parts_.cache.reserve({current(require(name))});
    parts_.catalog.pin(name, pin);
  });
  tell(telemetry::EventKind::kPin, require(name), pin.reason);
  if (keeps()) (void)warm(name);
  return summary_of(name);
}

api::Model Service::unpin(const std::string& name) {
  parts_.catalog.unpin(name);
  tell(telemetry::EventKind::kUnpin, require(name));
  return summary_of(name);
}

std::vector<std::string> Service::files_with(const Digest& digest) const {
  std::vector<std::string> files;
  for (const catalog::Model& model : parts_.catalog.list()) {
    const auto snapshot = parts_.catalog.snapshot(model.current);
    if (!snapshot) continue;
    for (const snapshot::File& file : snapshot->files()) {
      if (file.sha256 == digest) files.push_back(model.name + "/" + file.path);
    }
  }
  return files;
}

api::VerifyResult Service::verify(const std::string& name, const Job& job) {
  std::vector<Digest> digests;
  std::uint64_t total = 0;
  if (!parts_.store.readable()) require_store("nothing can be verified");
  if (name.empty()) {
    digests = parts_.store.list();
    total = parts_.store.usage().bytes;
  } else {
    const auto snapshot = current(require(name));
    std::set<Digest> seen;
    for (const snapshot::File& file : snapshot->files()) {
      if (!file.sha256 || !parts_.store.contains(*file.sha256, file.size)) continue;
      if (!seen.insert(*file.sha256).second) continue;
      digests.push_back(*file.sha256);
      total += file.size;
    }
  }
  api::VerifyResult result;
  for (const Digest& digest : digests) {
    const auto outcome = parts_.store.verify(digest, [&](std::uint64_t bytes) {
      if (job.stop.stop_requested()) throw Error(Errc::kCancelled, "the daemon is stopping");
      result.bytes += bytes;
      job.report({.stage = "verifying", .bytes = result.bytes, .total = total});
    });
    if (outcome == store::VerifyOutcome::kMissing) continue;
    ++result.blobs;
    if (outcome == store::VerifyOutcome::kIntact) continue;
    parts_.mount.blob_damaged(digest);
    result.corrupt.push_back({.sha256 = digest.hex(), .files = files_with(digest)});
  }
  tell_verified(result, name);
  return result;
}

}  // namespace weightfs::control
