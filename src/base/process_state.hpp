// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <sys/types.h>
#include <cstdint>
#include <optional>

namespace weightfs {

/// What /proc/PID/stat (proc(5)) says of a process of this pid namespace.
struct ProcessState {
  /// Of a process whose other threads have not ended: it was killed, and they hang in the kernel.
  bool main_thread_ended = false;
  std::uint64_t started = 0;  ///< clock ticks after boot: with the pid, one process for ever
};

/// nullopt if there is no such process.
[[nodiscard]] std::optional<ProcessState> process_state(pid_t pid);

}  // namespace weightfs
