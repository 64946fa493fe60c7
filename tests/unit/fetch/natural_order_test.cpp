// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/natural_order.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace weightfs::fetch {
namespace {

TEST_CASE("numbers in names count as numbers") {
  std::vector<std::string> names{
      "model-10.gguf", "model-9.gguf", "b", "model-00002-of-00004", "model-00001-of-00004", "a10",
      "a9b",           "a9",           ""};
  std::sort(names.begin(), names.end(), natural_less);
  CHECK(names == std::vector<std::string>{"", "a9", "a9b", "a10", "b", "model-00001-of-00004",
                                          "model-00002-of-00004", "model-9.gguf", "model-10.gguf"});
}

TEST_CASE("numbers longer than any integer are compared all the same") {
  CHECK(natural_less("x99999999999999999999999998", "x99999999999999999999999999"));
  CHECK(natural_less("x9", "x10000000000000000000000000"));
}

TEST_CASE("the order is total and strict") {
  CHECK_FALSE(natural_less("a", "a"));
  CHECK((natural_less("a1", "a01") != natural_less("a01", "a1")));
  CHECK(natural_less("a0", "a00") != natural_less("a00", "a0"));
  CHECK(natural_less("a", std::string_view("\xff")));
}

}  // namespace
}  // namespace weightfs::fetch
