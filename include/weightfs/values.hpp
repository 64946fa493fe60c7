// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "weightfs/requests.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// What the control API says, as values. Member names are the keys of the JSON
/// (src/control/API.md). Paths and names are bytes as the filesystem has them. Sizes are bytes,
/// times seconds since 1970.
namespace weightfs::api {

/// Why something failed: `code` is one of a closed set ("not_found", "busy", ...), `message` a
/// sentence.
struct Fault {
  std::string code;
  std::string message;
  bool operator==(const Fault&) const = default;
};

// --- status ---

struct Passthrough {
  bool active = false;
  std::string reason;  ///< why it is not active
  bool operator==(const Passthrough&) const = default;
};

struct StoreStatus {
  std::string directory;
  std::uint64_t bytes = 0;  ///< of verified blobs
  std::uint64_t blobs = 0;
  std::uint64_t capacity = 0;  ///< of its filesystem
  std::uint64_t free = 0;
  std::uint64_t partial_bytes = 0;       ///< allocated to files that are being fetched
  std::uint64_t evicted_open_bytes = 0;  ///< removed, but still held open by a reader
  std::uint64_t quarantined = 0;         ///< files that failed verification
  /// Why it could not be opened when the daemon started. Nothing is kept then, and the other
  /// members tell of an empty one in its place.
  std::string error;
  bool operator==(const StoreStatus&) const = default;
};

/// A hit is an open of a complete file (its size, once per consumer and file), a miss an open of
/// one that was not; miss_bytes are the bytes that readers had to wait for.
struct CacheStatus {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t hit_bytes = 0;
  std::uint64_t miss_bytes = 0;
  bool operator==(const CacheStatus&) const = default;
};

struct SourceStatus {
  std::uint64_t bytes = 0;
  std::uint64_t requests = 0;
  std::uint64_t retries = 0;
  bool operator==(const SourceStatus&) const = default;
};

/// Requests that reached the daemon; reads of complete files do not, where passthrough is active.
struct FuseStatus {
  std::uint64_t lookups = 0;
  std::uint64_t opens = 0;
  std::uint64_t reads = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t open_files = 0;  ///< now
  bool operator==(const FuseStatus&) const = default;
};

struct FetchStatus {
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;
  std::uint64_t corrupt = 0;
  bool operator==(const FetchStatus&) const = default;
};

/// One file on its way into the store.
struct FillStatus {
  std::string name;  ///< of a model that has the file in the snapshot that the fill began for
  std::string path;
  /// What else stands for the same bytes, as NAME/PATH of current revisions: their readers wait for
  /// this fill, too.
  std::vector<std::string> also;
  std::string state;  ///< "filling", "complete" or "failed"
  std::string want;   ///< "demand", "background" or "file"
  std::uint64_t size = 0;
  std::uint64_t written = 0;
  std::uint64_t hashed = 0;
  std::uint64_t received = 0;
  std::uint64_t rate = 0;    ///< bytes per second from the source
  std::uint64_t parked = 0;  ///< readers that wait
  std::uint64_t connections = 0;
  bool streaming = false;  ///< past the disk
  std::optional<Fault> error;
  bool operator==(const FillStatus&) const = default;
};

/// A model of the configuration that is not in the catalog.
struct MissingModel {
  std::string name;
  Fault error;            ///< why not; "not_ready" while nothing has failed yet
  bool retrying = false;  ///< the daemon goes on trying
  bool operator==(const MissingModel&) const = default;
};

struct Status {
  std::string version;
  std::int64_t pid = 0;
  std::int64_t keeper_pid = 0;
  std::uint64_t uptime_seconds = 0;
  std::string mode;
  std::string mount;
  Passthrough passthrough;
  StoreStatus store;
  CacheStatus cache;
  SourceStatus source;
  FuseStatus fuse;
  FetchStatus fetch;
  std::uint64_t models = 0;
  std::vector<MissingModel> missing_models;
  std::vector<FillStatus> fills;
  bool operator==(const Status&) const = default;
};

// --- models ---

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
  bool pinned = false;
  std::string pin_reason;
  std::uint64_t file_count = 0;
  std::uint64_t revisions = 0;
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

/// The state of one path under the mount, in a sentence and in facts.
struct Why {
  std::string path;
  std::string
      state;  ///< "complete", "filling", "partial", "not_fetched", "failed", "directory", "absent"
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
  std::string stage;  ///< "resolving", "checking", "fetching", "verifying"
  std::uint64_t bytes = 0;
  std::uint64_t total = 0;  ///< 0 where it is not known
  bool operator==(const JobProgress&) const = default;
};

}  // namespace weightfs::api
