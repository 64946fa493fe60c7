// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "net/connection_pool.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace weightfs::net {

namespace {

MultiHandle new_multi() {
  MultiHandle handle(curl_multi_init());
  if (!handle) throw std::bad_alloc();
  // One origin, one request at a time: a second connection in here would be a leak.
  curl_multi_setopt(handle.get(), CURLMOPT_MAXCONNECTS, 1L);
  return handle;
}

}  // namespace

ConnectionPool::ConnectionPool(std::size_t max_idle, std::chrono::milliseconds idle_timeout,
                               const Clock& clock)
    : max_idle_(max_idle), idle_timeout_(idle_timeout), clock_(clock) {
}

MultiHandle ConnectionPool::acquire(const Peer& peer) {
  MultiHandle found;
  std::vector<Idle> surplus;
  idle_.with([&](std::deque<Idle>& idle) {
    surplus = take_surplus(idle);
    const auto last = std::ranges::find_if(
        idle.rbegin(), idle.rend(), [&](const Idle& candidate) { return candidate.peer == peer; });
    if (last == idle.rend()) return;
    found = std::move(last->handle);
    idle.erase(std::next(last).base());
  });
  return found ? std::move(found) : new_multi();
}

void ConnectionPool::release(const Peer& peer, MultiHandle handle) {
  std::vector<Idle> surplus;
  idle_.with([&](std::deque<Idle>& idle) {
    idle.push_back({peer, std::move(handle), clock_.now()});
    surplus = take_surplus(idle);
  });
}

std::vector<ConnectionPool::Idle> ConnectionPool::take_surplus(std::deque<Idle>& idle) const {
  std::vector<Idle> surplus;
  const Clock::TimePoint oldest = clock_.now() - idle_timeout_;
  while (!idle.empty() && (idle.size() > max_idle_ || idle.front().since < oldest)) {
    surplus.push_back(std::move(idle.front()));
    idle.pop_front();
  }
  return surplus;
}

}  // namespace weightfs::net
