// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>

namespace weightfs::cli {

/// How a detached mount came up, as its parent sees it.
enum class Detached {
  kChild,   ///< this is the child: go on and serve
  kReady,   ///< this is the parent, and is_ready() said so
  kFailed,  ///< this is the parent, and the child ended or did not become ready in time
};

struct DetachOptions {
  /// Gets what the child writes to standard output and error (appended; created 0640).
  std::filesystem::path log_file;
  std::chrono::seconds patience{60};
  std::function<bool()> is_ready;
};

/// Forks; the child gets a session of its own and no terminal. Call before the first thread starts.
/// Error(kIo).
[[nodiscard]] Detached detach(const DetachOptions& options);

}  // namespace weightfs::cli
