// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "snapshot/hub_reference.hpp"

#include "base/error.hpp"
#include "digest/git_blob.hpp"
#include "snapshot/lfs_pointer.hpp"
#include "snapshot/pinned_reference.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace weightfs;
using namespace weightfs::snapshot;

TEST_CASE("a repository of the Hub has a directory in its cache") {
  CHECK(HubReference::parse_locator("org/name").cache_folder() == "models--org--name");
  CHECK(HubReference::parse_locator("gpt2").cache_folder() == "models--gpt2");
  CHECK(HubReference::parse_locator("datasets/org/name").cache_folder() == "datasets--org--name");
  CHECK(HubReference::parse_locator("spaces/org/name").cache_folder() == "spaces--org--name");
}

TEST_CASE("a commit always means the same, a branch does not") {
  const std::string commit(40, 'a');
  CHECK(HubReference::parse_locator("org/name@" + commit).is_commit());
  CHECK(!HubReference::parse_locator("org/name").is_commit());
  CHECK(!HubReference::parse_locator("org/name@" + commit + "a").is_commit());
  CHECK(PinnedReference::parse("hf://org/name@" + commit).fixed());
  CHECK(!PinnedReference::parse("hf://org/name").fixed());
  CHECK(PinnedReference::parse("hf://org/name@v1@" + std::string(64, 'b')).fixed());
}

TEST_CASE("exactly this snapshot of a repository is its commit") {
  const std::string commit(40, 'c');
  File file{.path = "a", .size = 1, .sha256 = Digest::of("x")};
  CHECK(shown_reference(Snapshot("hf://org/name?endpoint=http://h:1", commit, {file})) ==
        "hf://org/name@" + commit + "?endpoint=http://h:1");
}

TEST_CASE("a version of a file of the Hub is its commit and git's id") {
  const HubVersion version{std::string(40, '1'), std::string(40, '2')};
  CHECK(HubVersion::parse(version.text()).blob == version.blob);
  for (const char* text : {"", "a b", "etag"}) CHECK_THROWS_AS(HubVersion::parse(text), Error);
}

TEST_CASE("a source says which repository of a Hub it shows") {
  const auto repository = [](const char* source) {
    const auto hub = hub_reference_of(source);
    return hub ? hub->text() : "none";
  };
  CHECK(repository("hf://org/name@v1") == "hf://org/name@v1");
  CHECK(repository("release://m=hf://org/name&m+=*.json") == "hf://org/name");
  CHECK(repository("release://m=https://host/m/&m|=hf://org/name") == "hf://org/name");
  CHECK(repository("release://a=hf://org/a&b=hf://org/b") == "none");
  CHECK(repository("https://host/m/") == "none");
  CHECK(repository("hf://no/such/name") == "none");
  CHECK(repository("no source") == "none");
}

TEST_CASE("a file is in LFS if git has the pointer to it") {
  // As git-lfs itself writes it (git-lfs/docs/spec.md).
  const auto sha256 =
      Digest::parse("4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393");
  const std::string id = git_blob_id(
      "version https://git-lfs.github.com/spec/v1\n"
      "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n");
  CHECK(is_lfs_pointer(id, *sha256, 12345));
  CHECK_FALSE(is_lfs_pointer(id, *sha256, 12346));
  CHECK_FALSE(is_lfs_pointer(git_blob_id("text"), Digest::of("text"), 4));
}
