// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"

#include <dirent.h>
#include <cstddef>
#include <memory>

namespace weightfs::source {

/// Levels of a tree that a walk enters: each holds a descriptor.
inline constexpr std::size_t kMaxWalkDepth = 128;

struct CloseDirectory {
  void operator()(DIR* directory) const noexcept { ::closedir(directory); }
};
using OpenDirectory = std::unique_ptr<DIR, CloseDirectory>;

/// For readdir(3); takes the descriptor over. Null, with errno, where that fails.
[[nodiscard]] inline OpenDirectory open_directory(Fd fd) noexcept {
  OpenDirectory directory(::fdopendir(fd.value()));
  if (directory) static_cast<void>(fd.release());
  return directory;
}

}  // namespace weightfs::source
