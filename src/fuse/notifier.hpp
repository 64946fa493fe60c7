// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "vfs/invalidator.hpp"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <string>
#include <thread>

struct fuse_session;

namespace weightfs::fuse {

/// Sends invalidations to the kernel from a thread of its own ("fuse-notify"). Bounded queue: what
/// does not fit is dropped, which costs a later check and never correctness.
///
/// Thread-safe. The session must outlive the time between attach() and detach().
class Notifier final : public vfs::Invalidator {
 public:
  static constexpr std::size_t kQueueLimit = 256 << 10;

  Notifier();
  ~Notifier() override;

  void attach(fuse_session* session);
  /// Returns when no notification is being sent.
  void detach();

  void entry(vfs::NodeId parent, const std::string& name) override;
  void node(vfs::NodeId node) override;

 private:
  struct Item {
    std::uint64_t node = 0;
    std::string name;  ///< empty: the node itself
  };
  struct State {
    std::deque<Item> queue;
    fuse_session* session = nullptr;
    bool sending = false;
  };

  void push(Item item);
  void run(std::stop_token stop);

  Synchronized<State> state_;
  std::condition_variable_any changed_;
  std::jthread thread_;
};

}  // namespace weightfs::fuse
