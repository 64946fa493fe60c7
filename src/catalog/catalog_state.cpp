// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "catalog/catalog_state.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "catalog/catalog_file.hpp"
#include "catalog/learned_file.hpp"

#include <sys/statvfs.h>
#include <algorithm>
#include <set>
#include <utility>

namespace weightfs::catalog {

namespace {

using snapshot::Snapshot;
using snapshot::SnapshotPtr;

constexpr std::uint64_t kMaxSnapshotBytes = 1ULL << 30;

void index_id(Tables& tables, const Snapshot& snapshot) {
  if (!snapshot.id()) return;
  // Two snapshots with one id have the same bytes; the one that was complete when it was listed
  // wins.
  auto [entry, added] = tables.keys_by_id.try_emplace(*snapshot.id(), snapshot.key());
  if (!added && snapshot.key() == *snapshot.id()) entry->second = snapshot.key();
}

void remove_quietly(const std::filesystem::path& file) {
  std::error_code ignored;  // an orphan costs a few kilobytes until the next change
  std::filesystem::remove(file, ignored);
}

std::vector<std::filesystem::directory_entry> list(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::directory_entry> entries;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    entries.push_back(*entry);
  }
  if (error) throw_errno(error.value(), "list " + folder.string());
  return entries;
}

std::filesystem::path prepared(std::filesystem::path directory) {
  std::error_code error;
  std::filesystem::create_directories(directory / "snapshots", error);
  if (error) throw_errno(error.value(), "create " + (directory / "snapshots").string());
  return directory;
}

// The names are written as a whole, so two that know different ones would undo each other; where
// the disk is read-only, nobody can.
std::optional<ProcessLock> lock(const std::filesystem::path& directory) {
  struct statvfs filesystem{};
  const bool known = ::statvfs(directory.c_str(), &filesystem) == 0;
  if (known && (filesystem.f_flag & ST_RDONLY) != 0) return std::nullopt;
  return std::optional<ProcessLock>(std::in_place, directory / "lock", "the state directory");
}

}  // namespace

CatalogState::CatalogState(std::filesystem::path directory, const Clock& clock, Log log)
    : directory_(prepared(std::move(directory))),
      clock_(clock),
      log_(std::move(log)),
      lock_(lock(directory_)) {
  Tables tables;
  tables.models = read_models(directory_ / "catalog.json");
  load_snapshots(tables);
  set_lost_aside(tables);
  tables_ = std::make_unique<Synchronized<Tables>>(std::move(tables));
}

void CatalogState::update_models(const std::function<void(Models&, Models&)>& change) {
  auto writer = writer_.lock();
  auto [models, lost] =
      tables_->with([](const Tables& tables) { return std::pair(tables.models, tables.lost); });
  change(models, lost);
  Models all = models;
  all.insert(lost.begin(), lost.end());
  write_models(directory_ / "catalog.json", all);
  tables_->with([&](Tables& tables) {
    tables.models.swap(models);
    tables.lost.swap(lost);
  });
  ++changes_;
  forget_unused();
}

void CatalogState::keep(const SnapshotPtr& snapshot) {
  const auto [known, on_disk] = tables_->with([&](const Tables& t) {
    const auto found = t.snapshots.find(snapshot->key());
    return std::pair(found == t.snapshots.end() ? nullptr : found->second,
                     found != t.snapshots.end() && !t.candidates.contains(snapshot->key()));
  });
  if (on_disk) return;
  write_snapshot(known ? *known : *snapshot);
  tables_->with([&](Tables& tables) {
    tables.snapshots.emplace(snapshot->key(), snapshot);
    tables.forgotten.erase(snapshot->key());
    index_id(tables, *tables.snapshots.at(snapshot->key()));
  });
  ++generation_;
}

void CatalogState::consider(const SnapshotPtr& snapshot, const std::string& name) {
  auto writer = writer_.lock();
  tables_->with([&](Tables& tables) {
    tables.snapshots.emplace(snapshot->key(), snapshot);
    tables.forgotten.erase(snapshot->key());
    tables.candidates.emplace(snapshot->key(), name);
  });
}

void CatalogState::dismiss(const Digest& snapshot_key) {
  auto writer = writer_.lock();
  tables_->with([&](Tables& tables) {
    const auto found = tables.candidates.find(snapshot_key);
    if (found != tables.candidates.end()) tables.candidates.erase(found);
  });
  forget_unused();
}

void CatalogState::learn(const Digest& snapshot_key, std::size_t file_index, const Digest& sha256) {
  auto writer = writer_.lock();
  const auto teacher = snapshot(snapshot_key);
  if (!teacher) return;
  const snapshot::File& known = teacher->files().at(file_index);
  for (const SnapshotPtr& pupil : snapshots()) {
    if (!pupil->provisional() || pupil->source() != teacher->source()) continue;
    const std::optional<std::size_t> index = pupil->index_of(known.path);
    if (!index) continue;
    const snapshot::File& file = pupil->files()[*index];
    if (file.sha256 || file.validator != known.validator) continue;
    learn_one(std::make_shared<const Snapshot>(pupil->with_digest(*index, sha256)),
              {.file_index = *index, .sha256 = sha256});
  }
}

SnapshotPtr CatalogState::snapshot(const Digest& key) const {
  return tables_->with([&](const Tables& tables) -> SnapshotPtr {
    const auto found = tables.snapshots.find(key);
    return found == tables.snapshots.end() ? nullptr : found->second;
  });
}

std::vector<SnapshotPtr> CatalogState::snapshots() const {
  return tables_->with([](const Tables& tables) {
    std::vector<SnapshotPtr> all;
    all.reserve(tables.snapshots.size());
    for (const auto& [key, snapshot] : tables.snapshots) all.push_back(snapshot);
    return all;
  });
}

std::int64_t CatalogState::now() const {
  return std::chrono::duration_cast<std::chrono::seconds>(clock_.wall().time_since_epoch()).count();
}

std::filesystem::path CatalogState::file_of(const Digest& key) const {
  return directory_ / "snapshots" / (key.hex() + ".json");
}

std::filesystem::path CatalogState::learned_of(const Digest& key) const {
  return directory_ / "snapshots" / (key.hex() + ".learned");
}

// One short line per digest while the snapshot is provisional, so that a snapshot of many files
// costs many lines and not many copies of itself; the whole is rewritten once, when it has its
// id. What cannot be written is known all the same: a full disk must not keep a snapshot
// provisional whose every byte is here and verified.
void CatalogState::learn_one(const SnapshotPtr& learned, const LearnedDigest& line) {
  const auto try_to = [&](const auto& write) {
    try {
      write();
    } catch (const Error& error) {
      log_.warning("digests of snapshot {} will have to be learned again after a restart: {}",
                   learned->key().hex(), error.what());
    }
  };
  try_to([&] { append_learned(learned_of(learned->key()), line); });
  if (!learned->provisional()) {
    try_to([&] {
      write_snapshot(*learned);
      remove_quietly(learned_of(learned->key()));
    });
  }
  tables_->with([&](Tables& tables) {
    tables.snapshots[learned->key()] = learned;
    index_id(tables, *learned);
  });
  if (!learned->provisional()) ++generation_;
}

void CatalogState::write_snapshot(const Snapshot& snapshot) const {
  write_file_durably(file_of(snapshot.key()), snapshot.to_json());
}

void CatalogState::load_snapshots(Tables& tables) const {
  for (const auto& entry : list(directory_ / "snapshots")) {
    const auto key = Digest::parse(entry.path().stem().string());
    if (!key || entry.path().extension() != ".json") continue;
    try {
      auto snapshot = std::make_shared<const Snapshot>(load(entry.path(), *key));
      index_id(tables, *snapshot);
      tables.snapshots.emplace(*key, std::move(snapshot));
    } catch (const Error& error) {
      if (error.code() == Errc::kUnsupported) {
        throw Error(error.code(), entry.path().string() + ": " + error.what());
      }
      log_.error("{} is damaged, and set aside: {}", entry.path().string(), error.what());
      std::error_code ignored;  // else it is tried again at the next start
      std::filesystem::rename(entry.path(), entry.path().string() + ".damaged", ignored);
    }
  }
}

Snapshot CatalogState::load(const std::filesystem::path& file, const Digest& key) const {
  Snapshot loaded = Snapshot::from_json(read_file(file, kMaxSnapshotBytes));
  if (loaded.key() != key) throw Error(Errc::kCorrupt, "it holds another snapshot");
  std::vector<LearnedDigest> lines = read_learned(learned_of(key));
  std::erase_if(
      lines, [&](const LearnedDigest& line) { return line.file_index >= loaded.files().size(); });
  return lines.empty() ? std::move(loaded) : loaded.with_digests(lines);
}

void CatalogState::set_lost_aside(Tables& tables) const {
  for (auto model = tables.models.begin(); model != tables.models.end();) {
    std::erase_if(model->second.revisions,
                  [&](const Digest& key) { return !tables.snapshots.contains(key); });
    const auto at = model++;
    std::optional<Digest>& confirmed = at->second.confirmed;
    if (confirmed && !tables.snapshots.contains(*confirmed)) confirmed.reset();
    if (tables.snapshots.contains(at->second.current)) continue;
    log_.error("{} is not shown until {} has been asked for it again", at->first,
               at->second.source);
    tables.lost.insert(tables.models.extract(at));
  }
}

// Forgets snapshots that no name has. A crash in between leaves a file that the next change
// removes.
void CatalogState::forget_unused() {
  const std::vector<Digest> unused = tables_->with([](Tables& tables) {
    std::set<Digest> used;
    for (const Models* models : {&tables.models, &tables.lost}) {
      for (const auto& [name, model] : *models) {
        used.insert(model.revisions.begin(), model.revisions.end());
      }
    }
    std::vector<Digest> gone;
    for (const auto& [key, snapshot] : tables.snapshots) {
      if (!used.contains(key) && !tables.candidates.contains(key)) gone.push_back(key);
    }
    for (const Digest& key : gone) tables.snapshots.erase(key);
    tables.forgotten.insert(gone.begin(), gone.end());
    tables.keys_by_id.clear();
    for (const auto& [key, snapshot] : tables.snapshots) index_id(tables, *snapshot);
    return gone;
  });
  if (!unused.empty()) ++generation_;
  for (const Digest& key : unused) {
    remove_quietly(file_of(key));
    remove_quietly(learned_of(key));
  }
}

}  // namespace weightfs::catalog
