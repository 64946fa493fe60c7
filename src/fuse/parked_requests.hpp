// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "vfs/filesystem.hpp"

#include <cstdint>
#include <optional>
#include <unordered_map>

namespace weightfs::fuse {

/// Requests that wait for the network, so that FUSE_INTERRUPT can end them: a reader that is killed
/// must die at once.
///
/// A request is entered before it is handed down and may be answered, interrupted or both before
/// its ticket is known; whichever comes last finds the entry in the state that the others left.
/// Nothing is called under the lock. Thread-safe.
class ParkedRequests {
 public:
  using Id = std::uint64_t;

  /// Before the request is handed down.
  [[nodiscard]] Id enter();
  /// After it was handed down; cancels it at once if the interrupt came first.
  void set_ticket(Id id, vfs::Ticket ticket);
  /// It is being answered.
  void leave(Id id);
  void interrupt(Id id);

 private:
  struct Entry {
    std::optional<vfs::Ticket> ticket;
    bool interrupted = false;
  };
  struct State {
    Id next = 1;
    std::unordered_map<Id, Entry> entries;
  };
  Synchronized<State> state_;
};

}  // namespace weightfs::fuse
