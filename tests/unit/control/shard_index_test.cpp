// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/shard_index.hpp"

#include "base/error.hpp"

#include <catch2/catch_test_macros.hpp>

#include <string>
#include <vector>

using namespace weightfs;
using namespace weightfs::control;

namespace {

snapshot::Snapshot snapshot_of(const std::vector<std::string>& paths, std::uint64_t size = 10) {
  std::vector<snapshot::File> files;
  for (const std::string& path : paths) {
    files.push_back({.path = path, .size = size, .sha256 = Digest::of(path)});
  }
  return {"file:///m", "", files};
}

}  // namespace

TEST_CASE("every shard that the index names must be in the snapshot, beside the index") {
  const std::string json =
      R"({"metadata":{},"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors","c":"m-1.safetensors"}})";
  const auto complete = snapshot_of({"m-1.safetensors", "m-2.safetensors"});
  const auto lacking = snapshot_of({"m-1.safetensors"});
  const auto nested = snapshot_of({"sub/m-1.safetensors", "m-2.safetensors"});
  CHECK_FALSE(missing_shard(complete, "m.safetensors.index.json", json));
  CHECK(missing_shard(lacking, "m.safetensors.index.json", json) == "m-2.safetensors");
  CHECK(missing_shard(nested, "sub/m.safetensors.index.json", json) == "sub/m-2.safetensors");
}

TEST_CASE("an index that says nothing of shards asks for nothing, one that is no JSON is refused") {
  const auto snapshot = snapshot_of({"x"});
  for (const char* json : {"{}", "[]", "1", R"({"weight_map":[]})", R"({"weight_map":{"a":1}})"}) {
    CHECK_FALSE(missing_shard(snapshot, "i", json));
  }
  CHECK_THROWS_AS(missing_shard(snapshot, "i", "{"), Error);
  CHECK_THROWS_AS(missing_shard(snapshot, "i", std::string(100'000, '[')), Error);
}

TEST_CASE("indexes are found anywhere in the tree unless they are huge") {
  CHECK(shard_indexes(
            snapshot_of({"a.safetensors.index.json", "b.json", "c/d.safetensors.index.json"})) ==
        std::vector<std::size_t>{0, 2});
  CHECK(shard_indexes(snapshot_of({"a.safetensors.index.json"}, kMaxShardIndex + 1)).empty());
}
