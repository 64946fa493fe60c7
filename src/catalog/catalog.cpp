// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "catalog/catalog.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/process_lock.hpp"
#include "base/synchronized.hpp"
#include "catalog/catalog_file.hpp"
#include "catalog/learned_file.hpp"

#include <sys/statvfs.h>
#include <algorithm>
#include <cerrno>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace weightfs::catalog {

namespace {

using snapshot::Snapshot;
using snapshot::SnapshotPtr;

constexpr std::uint64_t kMaxSnapshotBytes = 1ULL << 30;
constexpr std::size_t kMinPrefix = 8;

struct Tables {
  Models models;
  Models lost;
  std::unordered_map<Digest, SnapshotPtr> snapshots;  // by key
  std::unordered_map<Digest, Digest> keys_by_id;      // only of snapshots that have an id
  std::unordered_set<Digest> forgotten;
};

void index_id(Tables& tables, const Snapshot& snapshot) {
  if (!snapshot.id()) return;
  // Two snapshots with one id have the same bytes; the one that was complete when it was listed
  // wins.
  auto [entry, added] = tables.keys_by_id.try_emplace(*snapshot.id(), snapshot.key());
  if (!added && snapshot.key() == *snapshot.id()) entry->second = snapshot.key();
}

bool names_revision(const Snapshot& snapshot, std::string_view text) {
  const auto matches = [text](const std::string& word) {
    return word == text || (text.size() >= kMinPrefix && word.starts_with(text));
  };
  return matches(snapshot.revision()) || matches(snapshot.key().hex()) ||
         (snapshot.id() && matches(snapshot.id()->hex()));
}

}  // namespace

class Catalog::State {
 public:
  State(std::filesystem::path directory, const Clock& clock, Log log)
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

  // Applies `change` to a copy of the names, writes it, and only then lets readers see it. Changes
  // are rare and one at a time (writer_); readers never wait for the disk.
  template <class Change>
  void update_models(const Change& change) {
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
    forget_unused();
  }

  // A snapshot is written before any name can point to it.
  void keep(const SnapshotPtr& snapshot) {
    if (tables_->with([&](const Tables& t) { return t.snapshots.contains(snapshot->key()); }))
      return;
    write_snapshot(*snapshot);
    tables_->with([&](Tables& tables) {
      tables.snapshots.emplace(snapshot->key(), snapshot);
      tables.forgotten.erase(snapshot->key());
      index_id(tables, *snapshot);
    });
  }

  void learn(const Digest& snapshot_key, std::size_t file_index, const Digest& sha256) {
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

  [[nodiscard]] SnapshotPtr snapshot(const Digest& key) const {
    return tables_->with([&](const Tables& tables) -> SnapshotPtr {
      const auto found = tables.snapshots.find(key);
      return found == tables.snapshots.end() ? nullptr : found->second;
    });
  }

  [[nodiscard]] std::vector<SnapshotPtr> snapshots() const {
    return tables_->with([](const Tables& tables) {
      std::vector<SnapshotPtr> all;
      all.reserve(tables.snapshots.size());
      for (const auto& [key, snapshot] : tables.snapshots) all.push_back(snapshot);
      return all;
    });
  }

  template <class F>
  auto read(F&& f) const {
    return std::as_const(*tables_).with(std::forward<F>(f));
  }

  [[nodiscard]] std::int64_t now() const {
    return std::chrono::duration_cast<std::chrono::seconds>(clock_.wall().time_since_epoch())
        .count();
  }

 private:
  [[nodiscard]] std::filesystem::path file_of(const Digest& key) const {
    return directory_ / "snapshots" / (key.hex() + ".json");
  }

  // One short line per digest while the snapshot is provisional, so that a snapshot of many files
  // costs many lines and not many copies of itself; the whole is rewritten once, when it has its
  // id. What cannot be written is known all the same: a full disk must not keep a snapshot
  // provisional whose every byte is here and verified.
  void learn_one(const SnapshotPtr& learned, const LearnedDigest& line) {
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
  }

  [[nodiscard]] std::filesystem::path learned_of(const Digest& key) const {
    return directory_ / "snapshots" / (key.hex() + ".learned");
  }

  static void remove_quietly(const std::filesystem::path& file) {
    std::error_code ignored;  // an orphan costs a few kilobytes until the next change
    std::filesystem::remove(file, ignored);
  }

  void write_snapshot(const Snapshot& snapshot) const {
    write_file_durably(file_of(snapshot.key()), snapshot.to_json());
  }

  static std::vector<std::filesystem::directory_entry> list(const std::filesystem::path& folder) {
    std::error_code error;
    std::vector<std::filesystem::directory_entry> entries;
    for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      entries.push_back(*entry);
    }
    if (error) throw_errno(error.value(), "list " + folder.string());
    return entries;
  }

  void load_snapshots(Tables& tables) const {
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

  [[nodiscard]] Snapshot load(const std::filesystem::path& file, const Digest& key) const {
    Snapshot loaded = Snapshot::from_json(read_file(file, kMaxSnapshotBytes));
    if (loaded.key() != key) throw Error(Errc::kCorrupt, "it holds another snapshot");
    std::vector<LearnedDigest> lines = read_learned(learned_of(key));
    std::erase_if(
        lines, [&](const LearnedDigest& line) { return line.file_index >= loaded.files().size(); });
    return lines.empty() ? std::move(loaded) : loaded.with_digests(lines);
  }

  void set_lost_aside(Tables& tables) const {
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
  void forget_unused() {
    const std::vector<Digest> unused = tables_->with([](Tables& tables) {
      std::set<Digest> used;
      for (const Models* models : {&tables.models, &tables.lost}) {
        for (const auto& [name, model] : *models) {
          used.insert(model.revisions.begin(), model.revisions.end());
        }
      }
      std::vector<Digest> gone;
      for (const auto& [key, snapshot] : tables.snapshots) {
        if (!used.contains(key)) gone.push_back(key);
      }
      for (const Digest& key : gone) tables.snapshots.erase(key);
      tables.forgotten.insert(gone.begin(), gone.end());
      tables.keys_by_id.clear();
      for (const auto& [key, snapshot] : tables.snapshots) index_id(tables, *snapshot);
      return gone;
    });
    for (const Digest& key : unused) {
      remove_quietly(file_of(key));
      remove_quietly(learned_of(key));
    }
  }

  static std::filesystem::path prepared(std::filesystem::path directory) {
    std::error_code error;
    std::filesystem::create_directories(directory / "snapshots", error);
    if (error) throw_errno(error.value(), "create " + (directory / "snapshots").string());
    return directory;
  }

  // The names are written as a whole, so two that know different ones would undo each other; where
  // the disk is read-only, nobody can.
  static std::optional<ProcessLock> lock(const std::filesystem::path& directory) {
    struct statvfs filesystem{};
    const bool known = ::statvfs(directory.c_str(), &filesystem) == 0;
    if (known && (filesystem.f_flag & ST_RDONLY) != 0) return std::nullopt;
    return std::optional<ProcessLock>(std::in_place, directory / "lock", "the state directory");
  }

  const std::filesystem::path directory_;
  const Clock& clock_;
  const Log log_;
  const std::optional<ProcessLock> lock_;
  struct Writer {};
  Synchronized<Writer> writer_;  // before tables_ in lock order; the only lock held across writes
  std::unique_ptr<Synchronized<Tables>> tables_;
};

Catalog::Catalog(std::filesystem::path state_directory, const Clock& clock, Log log)
    : state_(std::make_unique<State>(std::move(state_directory), clock, std::move(log))) {
}

Catalog::~Catalog() = default;

void Catalog::add(const std::string& name, const std::string& source, const SnapshotPtr& snapshot) {
  check_name(name);
  state_->update_models([&](Models& models, Models& lost) {
    if (models.contains(name)) throw Error(Errc::kBusy, "the name " + name + " is taken");
    check_conflicts(models, name);
    state_->keep(snapshot);
    Model model;
    model.name = name;
    model.source = source;
    model.current = snapshot->key();
    model.revisions = {snapshot->key()};
    model.added = model.updated = state_->now();
    if (const auto before = lost.extract(name)) {
      model.pinned = before.mapped().pinned;
      model.pin_reason = before.mapped().pin_reason;
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
    state_->keep(snapshot);
    if (std::ranges::find(model.revisions, snapshot->key()) == model.revisions.end()) {
      model.revisions.push_back(snapshot->key());
    }
  });
}

void Catalog::flip(const std::string& name, const SnapshotPtr& snapshot) {
  state_->update_models([&](Models& models, Models&) {
    Model& model = require(models, name);
    state_->keep(snapshot);
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

void Catalog::set_pinned(const std::string& name, bool pinned, const std::string& reason) {
  state_->update_models([&](Models& models, Models&) {
    Model& model = require(models, name);
    model.pinned = pinned;
    model.pin_reason = pinned ? reason : "";
  });
}

void Catalog::learn(const Digest& snapshot_key, std::size_t file_index, const Digest& sha256) {
  state_->learn(snapshot_key, file_index, sha256);
}

std::optional<Model> Catalog::find(const std::string& name) const {
  return state_->read([&](const Tables& tables) -> std::optional<Model> {
    const auto found = tables.models.find(name);
    if (found == tables.models.end()) return std::nullopt;
    return found->second;
  });
}

std::vector<Model> Catalog::list() const {
  return state_->read([](const Tables& tables) {
    std::vector<Model> all;
    for (const auto& [name, model] : tables.models) all.push_back(model);
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
      if (found == tables.snapshots.end() || !names_revision(*found->second, text)) continue;
      if (match) return nullptr;  // ambiguous
      match = found->second;
    }
    return match;
  });
}

bool Catalog::pinned(const Digest& snapshot_key) const {
  return state_->read([&](const Tables& tables) {
    return std::any_of(tables.models.begin(), tables.models.end(), [&](const auto& entry) {
      return entry.second.pinned && entry.second.current == snapshot_key;
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

}  // namespace weightfs::catalog
