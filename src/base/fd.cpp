// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/fd.hpp"

#include "base/error.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>

namespace weightfs {

void Fd::reset() noexcept {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Fd Fd::duplicate() const {
  const int copy = ::fcntl(fd_, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) throw_errno(errno, "duplicate a descriptor");
  return Fd(copy);
}

}  // namespace weightfs
