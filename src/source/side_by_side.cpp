// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/side_by_side.hpp"

#include "base/error.hpp"
#include "base/synchronized.hpp"
#include "base/thread.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace weightfs::source {

void side_by_side(const std::string& name, std::size_t threads, std::size_t count,
                  const std::stop_token& stop,
                  const std::function<void(std::size_t, const std::stop_token&)>& work) {
  std::stop_source end;
  const std::stop_callback forward(stop, [&]() noexcept { end.request_stop(); });
  std::atomic<std::size_t> next{0};
  Synchronized<std::exception_ptr> failure;
  const auto in_turn = [&]() noexcept {
    try {
      while (!end.stop_requested()) {
        const std::size_t index = next++;
        if (index >= count) return;
        work(index, end.get_token());
      }
    } catch (...) {
      failure.with([](std::exception_ptr& first) {
        if (!first) first = std::current_exception();  // later ones are "cancelled"
      });
      end.request_stop();
    }
  };
  {
    std::vector<std::jthread> running;
    for (std::size_t i = 0; i < std::min(threads, count); ++i) {
      running.push_back(
          start_thread(name + "-" + std::to_string(i), [&](const std::stop_token&) { in_turn(); }));
    }
  }
  failure.with([](const std::exception_ptr& first) {
    if (first) std::rethrow_exception(first);
  });
  if (stop.stop_requested()) throw Error(Errc::kCancelled, "cancelled");
}

}  // namespace weightfs::source
