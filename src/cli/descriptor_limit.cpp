// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/descriptor_limit.hpp"

#include <sys/resource.h>

namespace weightfs::cli {

void raise_descriptor_limit() noexcept {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace weightfs::cli
