// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "fetch/target.hpp"

#include <functional>

namespace weightfs::fetch {

/// Asked before the bytes of a file are written to the store: whoever has the say over the disk
/// makes room for them, or says that they are not to be kept. Thread-safe. Must outlive the
/// Fetcher, and must not call it: the question comes from within Fetcher::fill().
class Room {
 public:
  virtual ~Room() = default;
  /// Calls `take`, which allocates the space of the file, while nobody else is given that space,
  /// and passes on what it throws. False, without having called it, where the file is to be
  /// streamed past the disk.
  [[nodiscard]] virtual bool claim(const Target& target, const std::function<void()>& take) = 0;
  /// The disk was full when a file was written that has its claim. Calls `write` again, makes room
  /// where that does not help, and calls it once more, while nobody else is given that space;
  /// passes on what it throws. Waits for claims that are under way.
  virtual void write_again(const Target& target, const std::function<void()>& write) = 0;
  /// What was claimed for some file is not kept, and is gone. Takes no lock.
  virtual void given_back() noexcept = 0;
  /// A file is about to be fetched past the disk without a claim, since nothing is kept at all.
  virtual void streamed(const Target& target) = 0;
};

}  // namespace weightfs::fetch
