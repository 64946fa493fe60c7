// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/file/beneath.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>

namespace weightfs::source {

Fd open_beneath(const Fd& root, const std::string& path, int flags) {
  struct open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  long fd = -1;
  do {
    // EAGAIN: a rename beside it left the kernel unsure whether the path stayed below.
    fd = ::syscall(SYS_openat2, root.value(), path.empty() ? "." : path.c_str(), &how, sizeof(how));
  } while (fd < 0 && (errno == EINTR || errno == EAGAIN));
  return Fd(static_cast<int>(fd));
}

}  // namespace weightfs::source
