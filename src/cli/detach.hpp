// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"

#include <sys/types.h>
#include <chrono>
#include <functional>

namespace weightfs::cli {

/// How a detached mount came up.
struct Detached {
  enum class As {
    kChild,   ///< this is the child: go on and serve
    kReady,   ///< this is the parent, and is_ready() said so
    kFailed,  ///< this is the parent, and the child ended or did not become ready in time
  };
  As as = As::kFailed;
  int exit_status = 1;  ///< kFailed: the child's, where it ended by itself
};

struct DetachOptions {
  /// Gets what the child writes to standard output and error. Must outlive the call.
  const Fd& log;
  std::chrono::seconds patience{60};
  /// Whether the child of this pid is ready; whoever else may be ready does not count.
  std::function<bool(pid_t child)> is_ready;
};

/// Forks; the child gets a session of its own and no terminal. Call before the first thread starts.
/// Error(kIo).
[[nodiscard]] Detached detach(const DetachOptions& options);

}  // namespace weightfs::cli
