// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/log.hpp"
#include "cache/governor.hpp"

#include <thread>

namespace weightfs::cache {

/// Keeps the limits of the store where others fill its disk: looks once a second. One thread
/// ("cache-upkeep"), until it is destroyed. The Governor, and its observer, must outlive it.
class Upkeep {
 public:
  Upkeep(Governor& governor, Log log);

 private:
  std::jthread thread_;
};

}  // namespace weightfs::cache
