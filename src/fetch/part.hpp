// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/byte_range.hpp"

#include <cstddef>
#include <cstdint>
#include <stop_token>

namespace weightfs::fetch {

/// In which order fills get connections: a reader waits; a reader will come; somebody prepares.
enum class Urgency : std::uint8_t { kDemand, kFile, kBackground };
inline constexpr std::size_t kUrgencies = 3;

/// Where the bytes of a fill are kept until its readers have them.
enum class Place : std::uint8_t { kDisk, kMemory };

/// One piece of work for one connection.
struct Part {
  enum class Kind : std::uint8_t {
    kRange,  ///< ask the source for `range`
    kClone,  ///< try to reflink the whole file
  };
  Kind kind = Kind::kRange;
  ByteRange range;
  /// Where its bytes go. A part that was begun for the disk has nowhere to put them once the fill
  /// has gone past the disk, and ends.
  Place place = Place::kDisk;
  std::uint64_t id = 0;  ///< within its fill
  /// Requested once nobody waits for the part any more: its fill has failed, or gave it up.
  std::stop_source stop{std::nostopstate};
};

}  // namespace weightfs::fetch
