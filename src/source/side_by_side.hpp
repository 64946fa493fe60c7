// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>

namespace weightfs::source {

/// Calls `work` once for each index below `count`, up to `threads` at a time, on threads named
/// `name` and a number; returns when all are done. The first exception ends the others (their stop
/// token), begins no more, and comes out; so does a request of `stop`, as Error(kCancelled).
void side_by_side(const std::string& name, std::size_t threads, std::size_t count,
                  const std::stop_token& stop,
                  const std::function<void(std::size_t index, const std::stop_token& stop)>& work);

}  // namespace weightfs::source
