// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "snapshot/manifest.hpp"

#include "base/error.hpp"
#include "snapshot/snapshot.hpp"

#include <fmt/format.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <chrono>
#include <string>

using namespace weightfs;
using namespace weightfs::snapshot;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

const std::string kHex = Digest::of("abc").hex();

std::string one_entry(const std::string& members) {
  return "{\"files\":[{" + members + "}]}";
}

std::string with_path(const std::string& path) {
  return one_entry(fmt::format(R"("path":"{}","size":1,"sha256":"{}")", path, kHex));
}

std::string with_size(const std::string& size) {
  return one_entry(fmt::format(R"("path":"a","size":{},"sha256":"{}")", size, kHex));
}

void refuses(const std::string& json, const std::string& what) {
  CAPTURE(json.substr(0, 200), what);
  try {
    (void)parse_manifest(json);
    FAIL_CHECK("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kInvalid);
    CHECK_THAT(error.what(), ContainsSubstring(what));
  }
}

void refuses_checksums(const std::string& text, const std::string& what) {
  CAPTURE(text, what);
  CHECK_THROWS_MATCHES(parse_checksums(text), Error, MessageMatches(ContainsSubstring(what)));
}

}  // namespace

TEST_CASE("a manifest gives path, size, digest, mtime and executable bit") {
  const auto files = parse_manifest(
      R"({"generator":{"name":["x",{}]},"files":[
          {"path":"b/run.sh","size":7,"sha256":")" +
      kHex + R"(","mtime":-5,"executable":true,"x":[[]]},
          {"size":0,"sha256":")" +
      kHex + R"(","path":"a"}]})");
  REQUIRE(files.size() == 2);
  CHECK(files[0] == File{.path = "b/run.sh",
                         .size = 7,
                         .executable = true,
                         .mtime = -5,
                         .sha256 = Digest::of("abc")});
  CHECK(files[1] == File{.path = "a", .sha256 = Digest::of("abc")});
}

TEST_CASE("a manifest knows nothing of the members of our state files") {
  const auto files = parse_manifest(
      R"({"version":"two","key":3,"files":[{"path":"a","size":1,"validator":{},"learned":7,"sha256":")" +
      kHex + "\"}]}");
  CHECK(files.at(0).validator.empty());
}

TEST_CASE("an empty list of files is a manifest") {
  CHECK(parse_manifest(R"({"files":[]})").empty());
}

TEST_CASE("what was written is read again, byte for byte") {
  std::vector<File> files{
      {.path = "tab\there \"quoted\" \\ \xC3\xA9", .size = kMaxFileSize, .sha256 = Digest::of("1")},
      {.path = "not utf-8 \xFF\xFE/\x80",
       .size = 2,
       .executable = true,
       .mtime = 1'700'000'000,
       .sha256 = Digest::of("2")},
      {.path = "new\nline", .size = 0, .mtime = -1, .sha256 = Digest::of("3")}};
  const std::string json = write_manifest(files);
  CHECK(json.find("path_base64") != std::string::npos);
  CHECK(parse_manifest(json) == files);
}

TEST_CASE("a manifest is not written without digests, and validators stay at home") {
  CHECK_THROWS_MATCHES(write_manifest({{.path = "a"}}), Error,
                       MessageMatches(ContainsSubstring("\"a\" has no sha256")));
  CHECK_THROWS_AS(write_manifest({{.path = "../a", .sha256 = Digest()}}), Error);
  const std::string json =
      write_manifest({{.path = "a", .sha256 = Digest(), .validator = "\"etag\""}});
  CHECK(json.find("etag") == std::string::npos);
}

TEST_CASE("a manifest with a bad path is refused, naming it") {
  refuses(with_path("../x"), "files[0]: the path \"../x\" has a \"..\" component");
  refuses(with_path("/etc/passwd"), "is absolute");
  refuses(with_path(""), "is empty");
  refuses(with_path("a/"), "empty component");
  refuses(with_path("a\\u0000b"), "NUL");
  refuses(with_path(std::string(256, 'x')), "255");
  refuses(with_path(std::string(5000, 'x')), "4096");
  refuses(one_entry(R"("path_base64":"Li4=","size":1,"sha256":")" + kHex + '"'), "\"..\"");
  refuses(one_entry(R"("path_base64":"@","size":1,"sha256":")" + kHex + '"'), "not base64");
  refuses(one_entry(R"("path_base64":"YQ==","path":"a","size":1,"sha256":")" + kHex + '"'), "both");
}

TEST_CASE("a manifest with a bad size is refused, naming the entry") {
  refuses(with_size("-1"), "files[0] (\"a\"): \"size\" is negative");
  refuses(with_size("-1e300"), "negative");
  refuses(with_size("9223372036854775808"), "larger than a file");
  refuses(with_size("18446744073709551616"), "too large");
  refuses(with_size("1.5"), "whole number");
  refuses(with_size("\"1\""), "\"size\" has the wrong type");
  refuses(with_size("null"), "wrong type");
  refuses(with_size("[1]"), "wrong type");
  refuses(with_size("{}"), "wrong type");
  refuses(with_size("1e400"), "not JSON");
  CHECK(parse_manifest(with_size("9223372036854775807")).at(0).size == kMaxFileSize);
}

TEST_CASE("a manifest with wrong types, missing or repeated members is refused") {
  const auto entry = [](const std::string& more) {
    return one_entry(fmt::format(R"("path":"a","size":1,"sha256":"{}"{})", kHex, more));
  };
  refuses("[]", "not an object");
  refuses("3", "not an object");
  refuses("null", "not an object");
  refuses("{}", "\"files\" is missing");
  refuses(R"({"files":{}})", "\"files\" has the wrong type");
  refuses(R"({"files":3})", "\"files\" has the wrong type");
  refuses(R"({"files":[],"files":[]})", "\"files\" appears twice");
  refuses(R"({"files":[3]})", "files[0]: is not an object");
  refuses(R"({"files":[[]]})", "files[0]: is not an object");
  refuses(R"({"files":[{}]})", "\"path\" is missing");
  refuses(R"({"files":[{"path":"a"}]})", "files[0] (\"a\"): \"size\" is missing");
  refuses(R"({"files":[{"path":"a","size":1}]})", "\"sha256\" is missing");
  refuses(R"({"files":[{"path":7}]})", "\"path\" has the wrong type");
  refuses(entry(R"(,"size":1)"), "\"size\" appears twice");
  refuses(entry(R"(,"executable":1)"), "\"executable\" has the wrong type");
  refuses(entry(R"(,"mtime":1.5)"), "\"mtime\" has the wrong type");
  refuses(entry(R"(,"mtime":9223372036854775808)"), "\"mtime\" is too large");
  refuses(one_entry(R"("path":"a","size":1,"sha256":"abc")"), "64 hexadecimal digits");
  refuses(one_entry(R"("path":"a","size":1,"sha256":null)"), "\"sha256\" has the wrong type");
}

TEST_CASE("an entry after a good one is named by its own number and path") {
  refuses(
      R"({"files":[{"path":"a","size":1,"sha256":")" + kHex + R"("},{"path":"b","size":true}]})",
      "files[1] (\"b\")");
}

TEST_CASE("JSON that is cut short, damaged or not UTF-8 is refused with the place") {
  const std::string good = with_path("a");
  for (std::size_t length = 0; length < good.size(); ++length) {
    CAPTURE(length);
    CHECK_THROWS_AS(parse_manifest(good.substr(0, length)), Error);
  }
  refuses(good + "x", "syntax error at byte");
  refuses(with_path("\xFF"), "syntax error at byte");
  refuses(with_path("\\ud800"), "syntax error at byte");
  refuses("{\"files\":[],}", "syntax error at byte");
}

TEST_CASE("JSON nested without end is refused") {
  refuses("{\"x\":" + std::string(1'000'000, '['), "nested deeper");
  std::string objects = "{\"files\":[{\"x\":";
  for (int i = 0; i < 100; ++i) objects += "{\"y\":";
  refuses(objects, "nested deeper");
  refuses(std::string(1'000'000, '['), "not an object");
}

TEST_CASE("200 MB of JSON is refused by its length alone") {
  const auto start = std::chrono::steady_clock::now();
  refuses(std::string(200'000'000, ' '), "200000000 bytes");
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(1));
}

TEST_CASE("a list of more than a million files is refused") {
  std::string json = R"({"version":1,"files":[)";
  for (std::size_t i = 0; i <= kMaxFiles; ++i) json += R"({"path":"a","size":0},)";
  CHECK_THROWS_MATCHES(Snapshot::from_json(json), Error,
                       MessageMatches(ContainsSubstring("more than 1000000 files")));
  // Every line of SHA256SUMS has 68 bytes or more, so its length limit comes first.
  CHECK(kMaxManifestBytes / 68 < kMaxFiles);
}

TEST_CASE("the time to parse a manifest grows as its files do, up to 100,000 of them") {
  const auto seconds_for = [](int count) {
    std::vector<File> files;
    for (int i = 0; i < count; ++i) {
      files.push_back({.path = fmt::format("dir-{}/sub-{}/a-rather-long-name-{}.safetensors",
                                           i % 97, i % 1009, i),
                       .size = 5,
                       .sha256 = Digest::of(std::to_string(i))});
    }
    const std::string json = write_manifest(files);
    const auto start = std::chrono::steady_clock::now();
    const Snapshot snapshot("http://host/", "", parse_manifest(json));
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    REQUIRE(snapshot.files().size() == static_cast<std::size_t>(count));
    return taken.count();
  };
  // Ten times the files: about eleven times the time. Quadratic would be a hundred.
  double best = 1e9;
  for (int attempt = 0; attempt < 5 && best > 30; ++attempt) {
    best = std::min(best, seconds_for(100'000) / seconds_for(10'000));
  }
  CHECK(best < 30);
}

TEST_CASE("SHA256SUMS is read in text and in binary mode") {
  const auto files = parse_checksums(kHex + "  a\n" + kHex + " *dir/b c\n# comment\n\n" + kHex +
                                     "  ./d\r\n" + kHex + "  last");
  REQUIRE(files.size() == 4);
  CHECK(files[0] == File{.path = "a", .sha256 = Digest::of("abc")});
  CHECK(files[1].path == "dir/b c");
  CHECK(files[2].path == "d");
  CHECK(files[3].path == "last");
}

TEST_CASE("the escapes of sha256sum are undone") {
  const auto files = parse_checksums("\\" + kHex + "  new\\nline\\\\back\\rreturn\n" + kHex +
                                     "  back\\nslash\n" + kHex + "  \xFF\xFE\n");
  REQUIRE(files.size() == 3);
  CHECK(files[0].path == "new\nline\\back\rreturn");
  CHECK(files[1].path == "back\\nslash");
  CHECK(files[2].path == "\xFF\xFE");
}

TEST_CASE("a malformed line of SHA256SUMS is refused with its number") {
  refuses_checksums("<html>", "line 1: does not begin with 64 hexadecimal digits");
  refuses_checksums(kHex + "  a\n" + kHex + "\n", "line 2: has no name");
  refuses_checksums(kHex + "  \n", "has no name");
  refuses_checksums(kHex + " a\n", "has no name");
  refuses_checksums(kHex + "  ../a\n", "\"..\" component");
  refuses_checksums(kHex + "  /a\n", "absolute");
  refuses_checksums(kHex.substr(1) + "  a\n", "64 hexadecimal digits");
  refuses_checksums("\\" + kHex + "  a\\t\n", "backslash");
  refuses_checksums("\\" + kHex + "  a\\\n", "backslash");
  refuses_checksums(std::string(kMaxManifestBytes + 1, '#'), "are not read");
}
