// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <sys/types.h>
#include <string>

namespace weightfs::vfs {

/// Who uses a snapshot: the cgroup of the calling process (a pod, a unit), else its session, else
/// `deployment`. Processes of one pod, and the pod restarted under the same name, are the same
/// consumer. Nothing is known of a pid of 0 (a caller in a pid namespace that ours cannot see into)
/// and of a process that is gone.
///
/// Reads /proc; thread-safe.
[[nodiscard]] std::string consumer_of(pid_t pid, const std::string& deployment);

/// The consumer in the text of /proc/PID/cgroup: the path of the unified hierarchy, else of the
/// first named one that is not the root; of a pod, without its containers. Empty where all are the
/// root. Pure.
[[nodiscard]] std::string consumer_from_cgroup(const std::string& text);

}  // namespace weightfs::vfs
