// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

namespace weightfs::keeper {

/// pidfd_open(2), close-on-exec: becomes readable when the child has ended. By number, because the
/// declaration of glibc 2.36 cannot be linked from C++. Invalid, with errno, if there is no such
/// child.
[[nodiscard]] inline Fd open_pidfd(pid_t child) {
  return Fd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
}

}  // namespace weightfs::keeper
