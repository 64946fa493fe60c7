// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/thread.hpp"

#include <pthread.h>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace weightfs {

std::jthread start_thread(std::string name, std::function<void(std::stop_token)> body) {
  return std::jthread([name = std::move(name), body = std::move(body)](std::stop_token stop) {
    pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
    body(std::move(stop));
  });
}

bool pause(const std::stop_token& stop, std::chrono::milliseconds duration) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, duration, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace weightfs
