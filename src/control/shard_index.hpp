// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "snapshot/snapshot.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weightfs::control {

/// "*.safetensors.index.json" says which shard holds which tensor, so it also says which shards a
/// model needs. Larger ones are not looked into.
inline constexpr std::string_view kShardIndexSuffix = ".safetensors.index.json";
inline constexpr std::uint64_t kMaxShardIndex = 16ULL << 20;

/// Positions of the shard indexes among the files of a snapshot.
[[nodiscard]] std::vector<std::size_t> shard_indexes(const snapshot::Snapshot& snapshot);

/// A shard that the index at `index_path` names and the snapshot lacks; nullopt where all are
/// there, and for an index without a "weight_map". Error(kInvalid) for what is no JSON. Pure.
[[nodiscard]] std::optional<std::string> missing_shard(const snapshot::Snapshot& snapshot,
                                                       std::string_view index_path,
                                                       std::string_view index_json);

}  // namespace weightfs::control
