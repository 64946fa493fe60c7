// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// What happened on a node, as the control API says it, as values. As in weightfs/values.hpp.
namespace weightfs::api {

/// Something that happened. What does not apply is empty.
struct Event {
  std::uint64_t seq = 0;  ///< grows from event to event, over restarts too, but not by one
  double time = 0;        ///< seconds since 1970, to the millisecond
  std::string event;      ///< what kind: "hit", "miss", "fill", "admission", "eviction", ...
  std::string action;     ///< what of its kind: "begin", "complete", "resident", ...
  std::string name;       ///< of the model, or the place in the mount
  std::string snapshot;   ///< the first digits of its key
  std::string path;       ///< of the file; of a disk, the directory of the store
  std::string source;
  std::string consumer;
  std::string lease = {};   ///< its id
  std::uint64_t bytes = 0;  ///< of the file, the snapshot, what was freed
  std::string reason;
  /// What a policy that only watches (mode shadow) would have reached so far.
  std::optional<double> hit_rate;
  std::optional<std::uint64_t> saved_bytes;
  bool operator==(const Event&) const = default;
};

/// Which events are asked for.
struct EventQuery {
  /// Those after this one, oldest first. Not set: the last ones.
  std::optional<std::uint64_t> since;
  std::uint64_t limit = 1000;      ///< 1 at least; the daemon remembers a few thousand
  std::uint64_t wait_seconds = 0;  ///< for one to come, where there is none; 30 at most
};

struct EventPage {
  std::vector<Event> events;  ///< oldest first
  std::uint64_t last = 0;     ///< `since` of the next query
  /// Some after `since` are not remembered any more. They may be in the log in the state directory.
  bool missed = false;
  bool operator==(const EventPage&) const = default;
};

}  // namespace weightfs::api
