// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "io/reader_pool.hpp"

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
  std::vector<std::unique_ptr<DirectReader>> surplus;  // freed without the lock
  state_.with([&](State& state) {
    if (--state.in_use == 0) {
      surplus = std::exchange(state.idle, {});
      reader->release_pages();
    }
    try {
      state.idle.push_back(std::move(reader));
    } catch (const std::bad_alloc&) {
      surplus.clear();  // and `reader` is freed: it is a cache
    }
  });
}

}  // namespace weightfs::io
