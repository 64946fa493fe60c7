// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "snapshot/release.hpp"

#include "base/error.hpp"

#include <catch2/catch_test_macros.hpp>

#include <string>
#include <vector>

using namespace weightfs;
using snapshot::Reference;
using snapshot::Release;
using snapshot::ReleasePart;

TEST_CASE("a release is read back as it was written, whatever its sources contain") {
  const Release release({{.name = "base",
                          .sources = {Reference::parse("https://host/a%20b/?x=1&y=2"),
                                      Reference::parse("hf://org/n")},
                          .overlay = false,
                          .selection = {{"*.safetensors", "a&b%"}, {"original/", "x y"}}},
                         {.name = "tokenizer",
                          .sources = {Reference::parse("file:///data/to ken&izer")},
                          .overlay = true,
                          .selection = {}},
                         {.name = "adapters/x",
                          .sources = {Reference::parse("http://host/x/")},
                          .overlay = false,
                          .selection = {}}});
  CHECK(Release::parse(release.text()).parts() == release.parts());
  const Reference reference = Reference::parse(release.text());
  CHECK(reference.scheme() == snapshot::Scheme::kRelease);
  CHECK(reference.text() == release.text());
  CHECK(Reference::parse(reference.text()) == reference);
  CHECK(release.parts()[0].prefix().empty());
  CHECK(release.parts()[2].prefix() == "adapters/x/");
}

TEST_CASE("of a release nobody sees what may be a secret") {
  const std::string text = Reference::parse("release://base=https://host/m/?token=s3cret").text();
  CHECK(snapshot::shown_source(text) == "release://base=https://host/m/?...");
  CHECK(snapshot::shown_source("release://base=nonsense?token=s3cret") == "release://...");
}

TEST_CASE("a release of one part at the root is all of its tree") {
  CHECK(Release::parse("release://base=file:///a&base|=file:///b").whole() != nullptr);
  CHECK(Release::parse("release://a/b=file:///a").whole() == nullptr);
  CHECK(Release::parse("release://base=file:///a&x=file:///b").whole() == nullptr);
}

TEST_CASE("a selection takes what the Hub's own client would") {
  const snapshot::Selection selection{{"*.safetensors", "*.json", "sub/"}, {"original/*", "*.bin"}};
  for (const char* path : {"a.safetensors", "x/a.safetensors", "config.json", "sub/a.txt"}) {
    CAPTURE(path);
    CHECK(selection.takes(path));
  }
  for (const char* path : {"original/a.safetensors", "sub/a.bin", "README.md", "sub"}) {
    CAPTURE(path);
    CHECK(!selection.takes(path));
  }
  CHECK(snapshot::Selection{}.takes("anything"));
  CHECK(!snapshot::Selection{{}, {"*"}}.takes("anything"));
}

TEST_CASE("what is no release is refused") {
  for (const char* const text :
       {"release://", "release://base", "release://=file:///a", "release://a b=file:///a",
        "release://../x=file:///a", "release://base=file:///a&base=file:///b",
        "release://base=nowhere", "release://base=file:///%zz",
        "release://base=release://base=file:///a", "release://base=file:///a&",
        "release://base|=file:///a", "release://base+=x&base=file:///a",
        "release://base=file:///a&other|=file:///b", "release://x-=file:///a"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(Reference::parse(text), Error);
  }
}
