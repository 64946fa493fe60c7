// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/thread.hpp"

#include <pthread.h>
#include <utility>

namespace weightfs {

std::jthread start_thread(std::string name, std::function<void(std::stop_token)> body) {
  return std::jthread([name = std::move(name), body = std::move(body)](std::stop_token stop) {
    pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
    body(std::move(stop));
  });
}

}  // namespace weightfs
