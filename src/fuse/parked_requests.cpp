// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fuse/parked_requests.hpp"

#include <utility>

namespace weightfs::fuse {

ParkedRequests::Id ParkedRequests::enter() {
  return state_.with([](State& state) {
    const Id id = state.next++;
    state.entries.try_emplace(id);
    return id;
  });
}

void ParkedRequests::set_ticket(Id id, vfs::Ticket ticket) {
  const bool cancel = state_.with([&](State& state) {
    const auto found = state.entries.find(id);
    if (found == state.entries.end()) return false;  // answered already
    found->second.ticket = ticket;
    return found->second.interrupted;
  });
  if (cancel) ticket.cancel();
}

void ParkedRequests::leave(Id id) {
  // A ticket may hold the last reference to its fill: it goes after the lock.
  const auto gone = state_.with([&](State& state) { return state.entries.extract(id); });
}

void ParkedRequests::interrupt(Id id) {
  const auto ticket = state_.with([&](State& state) -> std::optional<vfs::Ticket> {
    const auto found = state.entries.find(id);
    if (found == state.entries.end()) return std::nullopt;
    found->second.interrupted = true;
    return found->second.ticket;
  });
  if (ticket) ticket->cancel();
}

}  // namespace weightfs::fuse
