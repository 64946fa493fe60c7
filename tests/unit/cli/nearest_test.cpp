// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/nearest.hpp"

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <string>

using weightfs::cli::nearest;

TEST_CASE("a misspelt word finds what was meant, a foreign one finds nothing") {
  static constexpr std::array<std::string_view, 5> kWords{"store", "state", "socket", "part_size",
                                                          "deadline"};
  CHECK(nearest("store", kWords) == "store");
  CHECK(nearest("stroe", kWords) == "store");
  CHECK(nearest("partsize", kWords) == "part_size");
  CHECK(nearest("part-size", kWords) == "part_size");
  CHECK(nearest("dedline", kWords) == "deadline");
  CHECK(nearest("stat", kWords) == "state");
  CHECK(nearest("colour", kWords).empty());
  CHECK(nearest("", kWords).empty());
  CHECK(nearest(std::string(100'000, 's'), kWords).empty());
}
