// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "snapshot/snapshot.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weightfs::telemetry {

/// What an event tells of.
enum class EventKind {
  kStart,         ///< a daemon begins
  kStop,          ///< it ends, as it was told to
  kReference,     ///< a consumer begins to use a snapshot: what a replay reads
  kHit,           ///< a consumer opens a complete file, the first time
  kMiss,          ///< a consumer opens a file that is not complete
  kFill,          ///< of a file from its source: begin, stream (past the disk), complete, failed
  kVerification,  ///< of content: intact, learned (its listing had no digest), mismatch
  kAdmission,     ///< of a snapshot: probation, resident
  kEviction,      ///< of a snapshot, by the policy or a person
  kRefusal,       ///< there is no room for a file or a snapshot
  kShadow,        ///< what the policy would have done: would_cache_artifact, would_evict
  kAdd,           ///< a name
  kRemove,
  kUpdate,  ///< another revision of a name is to be fetched
  kFlip,    ///< the name shows it
  kConfirm,
  kRollback,
  kPin,
  kUnpin,
  kLease,    ///< taken, renewed, released, expired; complete, late
  kDisk,     ///< a directory of the store: set_aside, back
  kMode,     ///< of the cache, from one to another
  kDropped,  ///< events before this one that the log's file does not have, or may not have
};
[[nodiscard]] const char* name(EventKind kind) noexcept;
[[nodiscard]] std::optional<EventKind> kind_of(std::string_view name) noexcept;

/// Something that happened, for the record. A value. What does not apply is empty.
struct Event {
  EventKind kind{};
  std::string action;    ///< what of its kind, in one word
  std::string name;      ///< of the model, or the place in the mount that leads to it
  std::string snapshot;  ///< the first digits of its key, which never changes
  std::string path;      ///< of the file within the snapshot; a directory of the store
  std::string source;    ///< without what may be a secret
  std::string consumer;
  std::string lease = {};   ///< its id
  std::uint64_t bytes = 0;  ///< of what the event is about: the file, the snapshot, what was freed
  std::string reason;
  /// What the policy would have reached so far (shadow): of the references, from 0 to 1.
  std::optional<double> hit_rate = {};
  std::optional<std::uint64_t> saved_bytes = {};

  /// Set by whoever records it. The sequence is the microseconds since 1970 at which that happened,
  /// or one more than the event before: it grows, also over restarts and changes of the clock.
  std::uint64_t sequence = 0;
  std::chrono::system_clock::time_point time = {};

  bool operator==(const Event&) const = default;
};

/// An event about this snapshot, of all of its bytes; and about one of its files.
[[nodiscard]] Event about(EventKind kind, const snapshot::Snapshot& snapshot);
[[nodiscard]] Event about(EventKind kind, const snapshot::Snapshot& snapshot,
                          std::size_t file_index);

}  // namespace weightfs::telemetry
