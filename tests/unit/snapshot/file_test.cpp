// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "snapshot/file.hpp"

#include "base/error.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <string>

using namespace weightfs;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

void refuses(std::string_view path, const std::string& what) {
  CAPTURE(path, what);
  CHECK_THROWS_MATCHES(snapshot::check_path(path), Error, MessageMatches(ContainsSubstring(what)));
}

std::string long_path(std::size_t size) {
  std::string path;
  while (path.size() + 101 < size) path += std::string(100, 'd') + "/";
  return path + std::string(size - path.size(), 'f');
}

}  // namespace

TEST_CASE("ordinary and odd but legal paths are accepted") {
  for (const char* path : {"a", "config.json", "a/b/c", "...", "..a", "a..", ".hidden", "a b",
                           "a\nb", "\xFF\xFE/\x80", "a\\b", "C:", "-"}) {
    CAPTURE(path);
    CHECK_NOTHROW(snapshot::check_path(path));
  }
  CHECK_NOTHROW(snapshot::check_path(std::string(255, 'x')));
  CHECK_NOTHROW(snapshot::check_path(long_path(snapshot::kMaxPathBytes)));
}

TEST_CASE("a path that could leave its tree or that no filesystem takes is refused by name") {
  refuses("", "empty");
  refuses("/", "absolute");
  refuses("/etc/passwd", "\"/etc/passwd\" is absolute");
  refuses(".", "\".\" component");
  refuses("./a", "\".\" component");
  refuses("a/./b", "\".\" component");
  refuses("..", "\"..\" component");
  refuses("../a", "\"..\" component");
  refuses("a/../../b", "\"..\" component");
  refuses("a/..", "\"..\" component");
  refuses("a//b", "empty component");
  refuses("a/", "empty component");
  refuses(std::string_view("a\0b", 3), "NUL");
  refuses(std::string(256, 'x'), "more than 255 bytes");
  refuses("a/" + std::string(256, 'x') + "/b", "more than 255 bytes");
  refuses(long_path(snapshot::kMaxPathBytes + 1), "more than 4096 bytes");
  std::string deep = "a";
  for (std::size_t depth = 1; depth < snapshot::kMaxDepth; ++depth) deep += "/a";
  CHECK_NOTHROW(snapshot::check_path(deep));
  refuses(deep + "/a", "more than 128 components");
}
