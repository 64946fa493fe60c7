// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "keeper/errand.hpp"

#include <catch2/catch_test_macros.hpp>

#include <unistd.h>
#include <csignal>
#include <utility>

namespace weightfs::keeper {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLong{10'000};

TEST_CASE("an errand brings back what its work gave, once its child has ended") {
  Errand errand([]() -> Errand::Result { return {.value = -7}; });
  REQUIRE(errand.wait(kLong));
  CHECK(errand.value() == -7);
  CHECK(errand.wait(milliseconds(0)));  // again
  Errand moved(std::move(errand));
  CHECK(moved.value() == -7);
}

TEST_CASE("an errand whose child is killed brings back nothing") {
  Errand errand([]() -> Errand::Result {
    ::kill(::getpid(), SIGKILL);
    return {.value = 1};
  });
  REQUIRE(errand.wait(kLong));
  CHECK(errand.value() == std::nullopt);
}

TEST_CASE("an errand that does not end is not waited for") {
  Errand errand([]() -> Errand::Result {
    for (;;) ::pause();
  });
  CHECK_FALSE(errand.wait(milliseconds(20)));
  CHECK_FALSE(errand.wait(milliseconds(0)));
}

}  // namespace
}  // namespace weightfs::keeper
