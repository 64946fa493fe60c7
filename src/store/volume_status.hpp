// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "store/store_usage.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace weightfs::store {

enum class VolumeState {
  kUsable,
  kSetAside,   ///< writing failed: nothing new goes there until a probe succeeds; it is still read
  kNotOpened,  ///< its disk could not be used when it was to be opened, nor since
};

/// How one directory of the store is.
struct VolumeStatus {
  std::filesystem::path directory;
  VolumeState state = VolumeState::kNotOpened;
  std::string error;             ///< why it is not usable, or that it is full; empty: all is well
  std::uint64_t filesystem = 0;  ///< the same for those that share a disk's space
  StoreUsage usage;              ///< all zero where it is not opened
};

}  // namespace weightfs::store
