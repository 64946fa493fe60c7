// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/descriptor_limit.hpp"

#include <catch2/catch_test_macros.hpp>

#include <sys/resource.h>

TEST_CASE("a daemon may open as many files as its hard limit allows") {
  rlimit before = {};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit low = {.rlim_cur = 256, .rlim_max = before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
  weightfs::cli::raise_descriptor_limit();
  rlimit now = {};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &now) == 0);
  CHECK(now.rlim_cur == before.rlim_max);
  CHECK(now.rlim_max == before.rlim_max);
  CHECK(::setrlimit(RLIMIT_NOFILE, &before) == 0);
}
