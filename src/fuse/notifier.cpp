// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#define FUSE_USE_VERSION 317

#include "fuse/notifier.hpp"

#include "base/thread.hpp"

#include <fuse_lowlevel.h>

#include <utility>

namespace weightfs::fuse {

Notifier::Notifier() : thread_(start_thread("fuse-notify", [this](auto stop) { run(stop); })) {
}

Notifier::~Notifier() = default;

void Notifier::attach(fuse_session* session) {
  state_.with([&](State& state) { state.session = session; });
  changed_.notify_all();
}

void Notifier::detach() {
  auto state = state_.lock();
  state->session = nullptr;
  state.wait(changed_, [&] { return !state->sending; });
}

void Notifier::entry(vfs::NodeId parent, const std::string& name) {
  push({parent.value(), name});
}

void Notifier::node(vfs::NodeId node) {
  push({node.value(), ""});
}

void Notifier::push(Item item) {
  state_.with([&](State& state) {
    if (state.queue.size() < kQueueLimit) state.queue.push_back(std::move(item));
  });
  changed_.notify_all();
}

void Notifier::run(std::stop_token stop) {
  for (;;) {
    Item item;
    fuse_session* session = nullptr;
    {
      auto state = state_.lock();
      const bool ready = state.wait(
          changed_, stop, [&] { return state->session != nullptr && !state->queue.empty(); });
      if (!ready) return;
      item = std::move(state->queue.front());
      state->queue.pop_front();
      session = state->session;
      state->sending = true;
    }
    // ENOENT (the kernel does not know the name) is the usual answer, and there is nobody to tell.
    if (item.name.empty()) {
      fuse_lowlevel_notify_inval_inode(session, item.node, 0, 0);
    } else if (fuse_lowlevel_notify_expire_entry(session, item.node, item.name.data(),
                                                 item.name.size()) == -ENOSYS) {
      fuse_lowlevel_notify_inval_entry(session, item.node, item.name.data(), item.name.size());
    }
    state_.with([](State& state) { state.sending = false; });
    changed_.notify_all();
  }
}

}  // namespace weightfs::fuse
