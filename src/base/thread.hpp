// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>

namespace weightfs {

/// Starts a thread with a name (at most 15 characters are shown by the kernel). The owner keeps the
/// jthread: its destructor requests the stop and joins. `body` must not throw; what it can throw is
/// translated where it has a place to go.
[[nodiscard]] std::jthread start_thread(std::string name,
                                        std::function<void(std::stop_token)> body);

/// Sleeps, and ends early when the stop is requested. False if the stop came first.
bool pause(const std::stop_token& stop, std::chrono::milliseconds duration);

}  // namespace weightfs
