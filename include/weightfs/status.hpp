// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "weightfs/leases.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// How the daemon is, as the control API says it, as values. As in weightfs/values.hpp.
namespace weightfs::api {

/// Why something failed: `code` is one of a closed set ("not_found", "busy", ...), `message` a
/// sentence.
struct Fault {
  std::string code;
  std::string message;
  bool operator==(const Fault&) const = default;
};

struct Passthrough {
  bool active = false;
  std::string reason;  ///< why it is not active
  bool operator==(const Passthrough&) const = default;
};

/// One directory of the store.
struct VolumeStatus {
  std::string directory;
  std::string state;  ///< "ok", "set aside" (nothing new goes there) or "not opened"
  std::string error;  ///< why; or that it is full
  std::uint64_t bytes = 0;
  std::uint64_t capacity = 0;
  std::uint64_t free = 0;
  bool operator==(const VolumeStatus&) const = default;
};

/// All of its directories together.
struct StoreStatus {
  std::string directory;    ///< the first one
  std::uint64_t bytes = 0;  ///< of verified blobs
  std::uint64_t blobs = 0;
  std::uint64_t capacity = 0;  ///< of its filesystems
  std::uint64_t free = 0;
  std::uint64_t partial_bytes = 0;       ///< allocated to files that are being fetched
  std::uint64_t evicted_open_bytes = 0;  ///< removed, but still held open by a reader
  std::uint64_t quarantined = 0;         ///< files that failed verification
  std::string error;                     ///< why nothing is kept; empty where something can be
  std::string degraded;                  ///< why not all of it can be used; empty where all is well
  std::vector<VolumeStatus> volumes;
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

/// Bytes that could not be evicted when room was last short, and why: "open", "pinned", ...
struct KeptBytes {
  std::string reason;
  std::uint64_t bytes = 0;
  bool operator==(const KeptBytes&) const = default;
};

/// One who shares the node: what it is promised, what it may have at most, what it has.
struct TenantStatus {
  std::string name;
  std::uint64_t floor = 0;
  std::uint64_t cap = 0;
  std::uint64_t bytes = 0;
  bool operator==(const TenantStatus&) const = default;
};

/// What there would have been, were the mode prod: counted as the hits and misses of CacheStatus,
/// since the mode is shadow.
struct ShadowStatus {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t hit_bytes = 0;  ///< that the sources would not have been asked for
  double hit_rate = 0;          ///< hits of hits and misses, from 0 to 1
  bool operator==(const ShadowStatus&) const = default;
};

/// What the cache policy has made of the store's room, or in shadow mode would have. All zero where
/// the mode is off, or the store could not be opened.
struct PolicyStatus {
  std::string admission;
  std::uint64_t limit = 0;  ///< what the store may take now, files that are being fetched included
  std::uint64_t used = 0;   ///< of that
  std::uint64_t probation_limit = 0;
  std::uint64_t probation_bytes = 0;  ///< of snapshots that one consumer has asked for
  std::uint64_t resident_bytes = 0;   ///< of all others
  std::uint64_t evictions = 0;        ///< snapshots
  std::uint64_t evicted_bytes = 0;
  std::uint64_t refused = 0;  ///< files that were read past the disk for want of room
  std::vector<KeptBytes> kept;
  std::vector<TenantStatus> tenants;
  bool operator==(const PolicyStatus&) const = default;
};

struct SourceStatus {
  std::uint64_t bytes = 0;
  std::uint64_t requests = 0;
  std::uint64_t retries = 0;
  bool operator==(const SourceStatus&) const = default;
};

/// A limit of what is fetched, and what came of it.
struct LimitStatus {
  std::uint64_t bytes_per_second = 0;  ///< 0: none
  std::uint64_t waited_ms = 0;         ///< in which at least one fill waited for it
  bool operator==(const LimitStatus&) const = default;
};

struct BandwidthStatus {
  LimitStatus fill;   ///< taken from sources
  LimitStatus write;  ///< written to the store
  /// Of that, what nobody waits for: there is a limit while others read the store's disk.
  LimitStatus prefetch;
  bool operator==(const BandwidthStatus&) const = default;
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

/// The record of what happens (weightfs/events.hpp).
struct EventsStatus {
  std::uint64_t recorded = 0;  ///< since the daemon started
  std::uint64_t dropped = 0;  ///< of these, not written to the log: its disk was too slow or failed
  std::string error;          ///< why it cannot be written now
  bool operator==(const EventsStatus&) const = default;
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
  /// What is wrong with the configuration file, because of which the daemon goes by what it had
  /// before; empty where nothing is.
  std::string configuration_mistake;
  Passthrough passthrough;
  StoreStatus store;
  CacheStatus cache;
  PolicyStatus policy;
  std::optional<ShadowStatus> shadow;  ///< in mode shadow
  SourceStatus source;
  BandwidthStatus bandwidth;
  FuseStatus fuse;
  FetchStatus fetch;
  EventsStatus events;
  std::uint64_t models = 0;
  std::vector<MissingModel> missing_models;
  std::vector<Lease> leases;
  std::vector<FillStatus> fills;
  bool operator==(const Status&) const = default;
};

}  // namespace weightfs::api
