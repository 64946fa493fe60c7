// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"

#include <filesystem>

namespace weightfs::store {

/// The right to use a store: flock(2) on its `lock`, for as long as this lives. The kernel gives it
/// back when the process dies, however it dies. The file says who has it, for messages only.
class StoreLock {
 public:
  /// Error(kBusy) if somebody else, this process included, has it.
  explicit StoreLock(const std::filesystem::path& path);

 private:
  Fd fd_;
};

}  // namespace weightfs::store
