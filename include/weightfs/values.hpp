// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "weightfs/requests.hpp"
#include "weightfs/status.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// What the control API says, as values. Member names are the keys of the JSON
/// (src/control/API.md). Paths and names are bytes as the filesystem has them. Sizes are bytes,
/// times seconds since 1970.
namespace weightfs::api {

/// A revision that a name shows, or showed before. `reference` and `snapshot` are what `add` takes
/// to get the same bytes elsewhere: as source and as what to expect.
struct Revision {
  std::string revision;   ///< stands below the mount as NAME@REVISION
  std::string snapshot;   ///< its id; empty while provisional
  std::string key;        ///< as of Model
  std::string reference;  ///< SOURCE@ID; SOURCE@KEY while provisional; without a query
  bool current = false;
  bool confirmed = false;
  bool operator==(const Revision&) const = default;
};

struct Model {
  std::string name;
  std::string source;        ///< "..." in place of a query, which may hold a secret
  std::string revision;      ///< the source's own word for it, else the key
  std::string snapshot;      ///< its id: what stands below .snapshots; empty while provisional
  std::string key;           ///< names the snapshot in the state files; never changes
  bool provisional = false;  ///< some file's sha256 is not known yet
  std::uint64_t bytes = 0;
  std::uint64_t resident_bytes = 0;
  bool complete = false;  ///< every byte is in the store, verified
  std::string confirmed;  ///< the revision that it is rolled back to; empty: it has shown one only
  /// What `rollback` would do: "" nothing, "ready" show what is in the store, "cold" show what is
  /// not.
  std::string rollback;
  bool pinned = false;
  std::string pin_reason;
  std::string pin_owner;       ///< who pinned it, where that is known
  std::int64_t pin_until = 0;  ///< when the pin is over; 0: never
  std::uint64_t file_count = 0;
  std::uint64_t revisions = 0;
  std::vector<Revision> known_revisions;  ///< oldest first
  std::int64_t added = 0;
  std::int64_t updated = 0;
  bool operator==(const Model&) const = default;
};

struct ModelFile {
  std::string path;
  std::uint64_t size = 0;
  std::string sha256;  ///< empty until it is known
  std::uint64_t resident_bytes = 0;
  bool complete = false;
  bool operator==(const ModelFile&) const = default;
};

/// In JSON, the members of the model and "files" stand side by side.
struct ModelDetail {
  Model model;
  std::vector<ModelFile> files;
  bool operator==(const ModelDetail&) const = default;
};

/// How far a model is on its way into the store.
struct Progress {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint64_t written = 0;
  std::uint64_t verified = 0;
  std::uint64_t files = 0;
  std::uint64_t files_complete = 0;
  bool complete = false;
  bool running = false;        ///< a warm is under way
  std::optional<Fault> error;  ///< what ended the last warm
  bool operator==(const Progress&) const = default;
};

struct UpdateResult {
  std::string name;
  bool changed = false;
  std::string from;  ///< revision before
  std::string to;    ///< revision now
  /// A consumer that was loading through the name when it moved on: it may have files of both.
  std::string loader;
  bool operator==(const UpdateResult&) const = default;
};

/// What rm and evict gave back, or would give back.
struct Freed {
  std::string name;
  bool dry_run = false;
  std::uint64_t blobs = 0;
  std::uint64_t bytes = 0;
  /// Files that stay because another model has the same bytes (of evict with `shared`: a pinned
  /// one).
  std::uint64_t shared_blobs = 0;
  std::uint64_t shared_bytes = 0;
  bool operator==(const Freed&) const = default;
};

/// What a name showed before, and prune took away or left.
struct OldRevision {
  std::string name;
  std::string revision;
  std::string key;
  /// Why it stays: "confirmed", "shown" (by another name), "open", "fetching", "newest" (--keep).
  std::string kept;
  bool operator==(const OldRevision&) const = default;
};

/// What prune did, or would do.
struct Pruned {
  bool dry_run = false;
  std::vector<OldRevision> removed;
  std::vector<OldRevision> kept;
  std::uint64_t blobs = 0;
  std::uint64_t bytes = 0;
  bool operator==(const Pruned&) const = default;
};

struct CorruptBlob {
  std::string sha256;
  std::vector<std::string> files;  ///< "name/path" of what had it
  bool operator==(const CorruptBlob&) const = default;
};

struct VerifyResult {
  std::uint64_t blobs = 0;  ///< checked
  std::uint64_t bytes = 0;
  std::vector<CorruptBlob> corrupt;  ///< in quarantine now
  bool operator==(const VerifyResult&) const = default;
};

struct FileCount {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  bool operator==(const FileCount&) const = default;
};

/// A file that import took, or would take.
struct ImportedFile {
  std::string path;  ///< where it lies
  std::string file;  ///< "name/path" of what has it
  std::string sha256;
  std::uint64_t size = 0;
  std::string how;  ///< "reflinked", "linked", "copied"; "" in a dry run
  bool operator==(const ImportedFile&) const = default;
};

/// A file, or a directory, that import could not take or look at.
struct ImportFault {
  std::string path;
  std::string code;  ///< as of Fault; "corrupt": it is not what its name says
  std::string message;
  bool operator==(const ImportFault&) const = default;
};

/// What import found, and what it did about it, or would do.
struct ImportResult {
  bool dry_run = false;
  FileCount taken;      ///< those of the next three, or what would be taken
  FileCount reflinked;  ///< share their space with the file they are from
  FileCount linked;     ///< are the file they are from
  FileCount copied;
  FileCount present;                 ///< the store has them
  FileCount unknown;                 ///< no model has them
  FileCount fetching;                ///< being fetched by somebody else, and left to him
  FileCount mismatched;              ///< not what their names say
  FileCount failed;                  ///< that are wanted or may be, and could not be read or taken
  std::uint64_t passed_over = 0;     ///< links out of the directory or to nowhere, devices
  std::uint64_t without_digest = 0;  ///< files of the models whose source lists no sha256
  std::vector<ImportedFile> files;   ///< the first 1000 that were taken
  std::vector<ImportFault>
      faults;  ///< the first 1000, of mismatched and failed files and directories
  bool operator==(const ImportResult&) const = default;
};

/// The state of one path under the mount, in a sentence and in facts.
struct Why {
  std::string path;
  /// "complete", "filling", "partial", "not_fetched", "failed", "directory", "generated", "absent"
  std::string state;
  std::string sentence;
  std::string next_step;  ///< empty where nothing is to be done
  std::string name;       ///< of the model
  std::string file;       ///< within the model
  std::string source;
  std::string revision;
  std::string sha256;
  std::uint64_t size = 0;
  std::uint64_t resident_bytes = 0;
  std::optional<FillStatus> fill;
  std::optional<Fault> error;
  bool operator==(const Why&) const = default;
};

/// How far a long operation is.
struct JobProgress {
  std::string stage;  ///< "resolving", "checking", "fetching", "verifying", "importing"
  std::uint64_t bytes = 0;
  std::uint64_t total = 0;  ///< 0 where it is not known
  bool operator==(const JobProgress&) const = default;
};

/// A setting that the configuration has otherwise than the daemon that runs.
struct SettingDiff {
  std::string name;
  std::string running;
  std::string configured;
  std::string origin;  ///< of the configured value
  std::string takes;   ///< "reload", or "restart" of the daemon, until the configured one holds
  bool operator==(const SettingDiff&) const = default;
};

struct ModelDiff {
  std::string name;
  std::string change;  ///< "add", "change source", "remove", "pin", "unpin", "confirm", "adopt"
  std::string source;  ///< the new one
  /// What `reload` made of it: "applied"; "deferred", which goes on by itself; "refused", which
  /// does not. And why it was not applied.
  std::optional<std::string> outcome = {};
  std::optional<std::string> reason = {};
  bool operator==(const ModelDiff&) const = default;
};

/// What the configuration has otherwise than the daemon that runs.
struct ConfigDiff {
  std::vector<ModelDiff> models;  ///< `reload` sees to them
  bool tenants = false;           ///< they differ; `reload` sees to them
  std::vector<SettingDiff> settings;
  bool operator==(const ConfigDiff&) const = default;
};

struct ModeChange {
  std::string from;
  std::string to;
  bool operator==(const ModeChange&) const = default;
};

}  // namespace weightfs::api
