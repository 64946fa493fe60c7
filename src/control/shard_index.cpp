// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/shard_index.hpp"

#include "base/error.hpp"
#include "control/json_codec.hpp"

#include <fmt/format.h>

#include <set>

namespace weightfs::control {

std::vector<std::size_t> shard_indexes(const snapshot::Snapshot& snapshot) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < snapshot.files().size(); ++i) {
    const snapshot::File& file = snapshot.files()[i];
    if (file.path.ends_with(kShardIndexSuffix) && file.size <= kMaxShardIndex) found.push_back(i);
  }
  return found;
}

std::optional<std::string> missing_shard(const snapshot::Snapshot& snapshot,
                                         std::string_view index_path, std::string_view index_json) {
  Json json;
  try {
    json = parse_json(index_json);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{} is {}", index_path, error.what()));
  }
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (map == json.end() || !map->is_object()) return std::nullopt;
  std::set<std::string> shards;
  for (const Json& shard : *map) {
    if (shard.is_string()) shards.insert(shard.get<std::string>());
  }
  const std::size_t slash = index_path.rfind('/');
  const std::string_view folder =
      slash == std::string_view::npos ? "" : index_path.substr(0, slash + 1);
  for (const std::string& shard : shards) {
    std::string path = fmt::format("{}{}", folder, shard);
    if (snapshot.find(path) == nullptr) return path;
  }
  return std::nullopt;
}

}  // namespace weightfs::control
