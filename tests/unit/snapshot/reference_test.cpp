// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "snapshot/reference.hpp"

#include "base/error.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <vector>

using namespace weightfs;
using Catch::Matchers::ContainsSubstring;
using snapshot::Reference;
using snapshot::Scheme;

namespace {

struct Good {
  const char* text;
  Scheme scheme;
  const char* locator;
  const char* normal;
};

struct Bad {
  std::string text;
  const char* what;
};

}  // namespace

TEST_CASE("references are taken apart and normalised") {
  const Good cases[] = {
      {"file:///data/llama", Scheme::kFile, "/data/llama", "file:///data/llama"},
      {"file:///data//llama///", Scheme::kFile, "/data/llama", "file:///data/llama"},
      {"FILE:///a b/\xFF#?%20", Scheme::kFile, "/a b/\xFF#?%20", "file:///a b/\xFF#?%20"},
      {"file:///", Scheme::kFile, "/", "file:///"},
      {"http://Host:8080/Models/", Scheme::kHttp, "host:8080/Models/", "http://host:8080/Models/"},
      {"https://host", Scheme::kHttps, "host/", "https://host/"},
      {"https://host?list=1", Scheme::kHttps, "host/?list=1", "https://host/?list=1"},
      {"HTTPS://h/F.gguf?x=a@b", Scheme::kHttps, "h/F.gguf?x=a@b", "https://h/F.gguf?x=a@b"},
      {"http://[::1]:80/x", Scheme::kHttp, "[::1]:80/x", "http://[::1]:80/x"},
      {"hf://org/name@main", Scheme::kHf, "org/name", "hf://org/name"},
      {"hf://datasets/org/name@refs/pr/1", Scheme::kHf, "datasets/org/name@refs/pr/1",
       "hf://datasets/org/name@refs/pr/1"},
      {"hf://models/gpt2?endpoint=https://Mirror/", Scheme::kHf, "gpt2?endpoint=https://mirror",
       "hf://gpt2?endpoint=https://mirror"},
      {"oci://host/repo:tag", Scheme::kOci, "host/repo:tag", "oci://host/repo:tag"},
      {"s3://bucket/Prefix/", Scheme::kS3, "bucket/Prefix/", "s3://bucket/Prefix/"},
  };
  for (const Good& good : cases) {
    CAPTURE(good.text);
    const Reference reference = Reference::parse(good.text);
    CHECK(reference.scheme() == good.scheme);
    CHECK(reference.locator() == good.locator);
    CHECK(reference.text() == good.normal);
    CHECK(Reference::parse(reference.text()) == reference);
  }
}

TEST_CASE("a reference that is wrong is refused with what is wrong and an example") {
  const Bad cases[] = {
      {"", "has no scheme"},
      {"/data/llama", "file:///"},
      {"llama", "has no scheme"},
      {"ftp://host/x", "unknown scheme"},
      {"://x", "unknown scheme"},
      {"file://data/llama", "no absolute path"},
      {"file://", "no absolute path"},
      {"file:///data/../etc", "component"},
      {"file:///./x", "component"},
      {std::string("file:///a\0b", 11), "NUL"},
      {"http://", "host"},
      {"http:///x", "host"},
      {"http://:80/x", "host"},
      {"http://host:/x", "host"},
      {"http://host:0/x", "host"},
      {"http://host:65536/x", "host"},
      {"http://host:80x/x", "host"},
      {"http://[]/x", "host"},
      {"http://[::1/x", "host"},
      {"http://host/a b", "%20"},
      {"http://host/a\nb", "control"},
      {"http://host/a\\b", "backslash"},
      {"https://host/x#part", "fragment"},
      {"https://host#part", "fragment"},
      {"hf://", "names no repository"},
      {"hf://a/b/c", "names no repository"},
      {"hf://a/../b", "names no repository"},
      {"hf://a--b", "names no repository"},
      {"hf://a/b@", "no valid revision"},
      {"hf://a/b@x..y", "no valid revision"},
      {"hf://a/b@refs//pr", "no valid revision"},
      {"hf://a/b?token=x", "a query that is not"},
      {"hf://a/b?endpoint=file:///x", "no http(s) URL"},
      {"s3:///prefix", "names nothing"},
      {"http://host/" + std::string(10'000, 'x'), "too long"},
  };
  for (const Bad& bad : cases) {
    CAPTURE(bad.text);
    try {
      (void)Reference::parse(bad.text);
      FAIL_CHECK("accepted");
    } catch (const Error& error) {
      CHECK(error.code() == Errc::kInvalid);
      CHECK_THAT(error.what(), ContainsSubstring(bad.what));
      CHECK_THAT(error.what(), ContainsSubstring("an example: "));
    }
  }
}

TEST_CASE("a password in a URL is refused and not repeated") {
  struct Bad {
    const char* text;
    const char* what;
  };
  for (const auto& [text, what] : std::vector<Bad>{
           {"https://user:s3cret@host/x", "secrets come from files"},
           {"https://s3cret@host/x", "secrets come from files"},
           {"https://user:s3cret@host/a b", "%20"},
           {"https://user:s3cret/@host/x", "host"},
           {"https://user:x?s3cret@host/x", "host"},
           {"user:s3cret@host/x", "scheme"},
           {"ftp://user:s3cret@host/x", "scheme"},
           {"https://host/x?key=s3cret#part", "fragment"},
           {"https://host:0/x?key=s3cret", "host"},
       }) {
    CAPTURE(text);
    try {
      (void)Reference::parse(text);
      FAIL_CHECK("accepted");
    } catch (const Error& error) {
      CHECK_THAT(error.what(), ContainsSubstring(what));
      CHECK_THAT(error.what(), !ContainsSubstring("s3cret"));
    }
  }
}

TEST_CASE("what is shown of a source holds no secret") {
  CHECK(snapshot::shown_source("https://host/a/model.gguf?X-Sig=s3cret") ==
        "https://host/a/model.gguf?...");
  CHECK(snapshot::shown_source("https://host?s3cret") == "https://host?...");
  CHECK(snapshot::shown_source("https://user:s3cret@host/x") == "https://...@host/x");
  CHECK(snapshot::shown_source("s3://id:s3cret@bucket/x@1/") == "s3://...@bucket/x@1/");
  for (const char* plain : {"http://host/m@1/", "hf://org/name@v1", "file:///a?b@c/d#e", "", "x"}) {
    CHECK(snapshot::shown_source(plain) == plain);
  }
}
