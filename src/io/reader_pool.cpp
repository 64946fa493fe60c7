// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "io/reader_pool.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace weightfs::io {

ReaderPool::Lease ReaderPool::take() {
  std::unique_ptr<DirectReader> reader;
  state_.with([&](State& state) {
    ++state.in_use;
    if (state.idle.empty()) return;
    reader = std::move(state.idle.back());
    state.idle.pop_back();
  });
  try {
    if (!reader) reader = std::make_unique<DirectReader>(options_);
  } catch (...) {
    state_.with([](State& state) { --state.in_use; });
    throw;
  }
  return {*this, std::move(reader)};
}

std::size_t ReaderPool::idle() const {
  return state_.with([](const State& state) { return state.idle.size(); });
}

void ReaderPool::give_back(std::unique_ptr<DirectReader> reader) noexcept {
  // Freed without the lock, and so is `reader` where it is not kept.
  std::unique_ptr<DirectReader> surplus;
  state_.with([&](State& state) {
    const unsigned in_use = --state.in_use;
    // No more were idle than in use, so that at most one is too many now.
    if (state.idle.size() > in_use) {
      surplus = std::move(state.idle.back());
      state.idle.pop_back();
    }
    if (state.idle.size() >= std::max(in_use, 1U)) return;
    if (in_use == 0) reader->release_pages();
    try {
      state.idle.push_back(std::move(reader));
    } catch (const std::bad_alloc&) {
      // Freed: it is a cache.
    }
  });
}

}  // namespace weightfs::io
