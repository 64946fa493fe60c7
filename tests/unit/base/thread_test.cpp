// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/thread.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace weightfs;

TEST_CASE("a pause says whether it ended by itself, and ends with the stop") {
  std::stop_source source;
  CHECK(pause(source.get_token(), std::chrono::milliseconds(1)));
  const std::jthread stopper([&] { source.request_stop(); });
  CHECK_FALSE(pause(source.get_token(), std::chrono::hours(1)));
  CHECK_FALSE(pause(source.get_token(), std::chrono::hours(1)));
}
