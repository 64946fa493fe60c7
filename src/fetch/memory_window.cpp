// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/memory_window.hpp"

#include <algorithm>
#include <atomic>

namespace weightfs::fetch {

/// Counts the bytes of all blocks that exist; outlives the window with the last of them.
class MemoryWindow::Live {
 public:
  static BlockBytes wrap(const std::shared_ptr<Live>& live, std::vector<std::byte> bytes) {
    const std::uint64_t size = bytes.size();
    live->bytes_ += size;
    auto block = std::make_unique<const std::vector<std::byte>>(std::move(bytes));
    return {block.release(), [live, size](const std::vector<std::byte>* dead) {
              std::default_delete<const std::vector<std::byte>>()(dead);
              live->bytes_ -= size;
            }};
  }

  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  std::atomic<std::uint64_t> bytes_{0};
};

MemoryWindow::MemoryWindow(std::uint64_t capacity)
    : capacity_(capacity), live_(std::make_shared<Live>()) {
}

std::uint64_t MemoryWindow::bytes() const {
  return live_->bytes();
}

MemoryWindow::Stream::Stream(MemoryWindow& window)
    : window_(window), id_(window.state_.with([](State& state) {
        ++state.streams;
        return ++state.last_stream;
      })) {
}

MemoryWindow::Stream::~Stream() {
  window_.state_.with([&](State& state) {
    --state.streams;
    const auto first = state.entries.lower_bound({id_, 0});
    const auto last = state.entries.lower_bound({id_ + 1, 0});
    for (auto it = first; it != last; ++it) state.recent.erase(it->second);
    state.entries.erase(first, last);
  });
}

BlockBytes MemoryWindow::Stream::insert(std::uint64_t block, std::vector<std::byte> bytes) {
  BlockBytes wrapped = Live::wrap(window_.live_, std::move(bytes));
  window_.state_.with([&](State& state) {
    const Key key{id_, block};
    if (const auto old = state.entries.find(key); old != state.entries.end()) {
      state.recent.erase(old->second);
      state.entries.erase(old);
    }
    state.recent.push_front({key, wrapped});
    state.entries.emplace(key, state.recent.begin());
    while (window_.live_->bytes() > window_.capacity_ && !state.recent.empty()) {
      state.entries.erase(state.recent.back().key);
      state.recent.pop_back();
    }
  });
  return wrapped;
}

BlockBytes MemoryWindow::Stream::find(std::uint64_t block) {
  return window_.state_.with([&](State& state) -> BlockBytes {
    const auto found = state.entries.find({id_, block});
    if (found == state.entries.end()) return nullptr;
    state.recent.splice(state.recent.begin(), state.recent, found->second);
    return found->second->bytes;
  });
}

std::uint64_t MemoryWindow::Stream::share() const {
  return window_.state_.with([&](const State& state) {
    return window_.capacity_ / std::max<std::uint64_t>(1, state.streams);
  });
}

}  // namespace weightfs::fetch
