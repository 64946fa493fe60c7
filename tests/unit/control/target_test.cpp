// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/target.hpp"

#include "base/error.hpp"
#include "net/percent_encoding.hpp"

#include <catch2/catch_test_macros.hpp>

#include <string>

using namespace weightfs;
using namespace weightfs::control;

TEST_CASE("a target is taken apart into path, action and parameters") {
  const Target target = parse_target("/v1/models/org/name:evict?dry_run=1&x=a%26b&flag&x=last");
  CHECK(target.path == "/v1/models/org/name");
  CHECK(target.action == "evict");
  CHECK(target.flag("dry_run"));
  CHECK_FALSE(target.flag("absent"));
  CHECK(target.parameters.at("x") == "last");
  CHECK(target.parameters.at("flag").empty());
  CHECK_THROWS_AS(target.flag("flag"), Error);
}

TEST_CASE("only a bare colon in the last component begins an action") {
  CHECK(parse_target("/v1/models/a:b/c").action.empty());
  CHECK(parse_target("/v1/models/a:b/c").path == "/v1/models/a:b/c");
  CHECK(parse_target("/v1/models/a%3Ab:warm").path == "/v1/models/a:b");
  CHECK(parse_target("/v1/models/a%3Awarm").action.empty());
  CHECK(parse_target("/v1/why?path=/a:b").action.empty());
}

TEST_CASE("broken targets are refused") {
  for (const char* text :
       {"", "v1", "http://host/v1", "/%", "/%4", "/%zz", "/%00", "/a?x=%0", "/a:%"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_target(text), Error);
  }
}

TEST_CASE("any bytes survive encoding") {
  std::string bytes;
  for (int c = 1; c < 256; ++c) bytes += static_cast<char>(c);
  CHECK(parse_target("/" + net::percent_encode_path(bytes)).path == "/" + bytes);
  CHECK(parse_target("/?x=" + net::percent_encode(bytes)).parameters.at("x") == bytes);
  // The ':' that would begin an action does not stand as itself.
  CHECK(net::percent_encode_path("org/na me:1") == "org/na%20me%3A1");
}
