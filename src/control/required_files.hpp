// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "snapshot/snapshot.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weightfs::control {

/// What a loader needs beside weights, as far as the files themselves say which loader it is: the
/// layout of Transformers and Diffusers. A tree that says nothing of the kind (a single file, GGUF,
/// weights of another making) needs nothing. All pure.

/// A configuration is small; a larger file of that name is not looked into.
inline constexpr std::uint64_t kMaxModelConfig = 1ULL << 20;

/// Path of a config.json that should lie beside weights that have a tokenizer or generation
/// settings by their side, or beside the shards of a diffusion model, and does not. nullopt where
/// all are there.
[[nodiscard]] std::optional<std::string> missing_config(const snapshot::Snapshot& snapshot);

/// Position of the config.json to ask whether a tokenizer is needed: of a model that has weights
/// and no file that could be a tokenizer. nullopt where there is nothing to ask.
[[nodiscard]] std::optional<std::size_t> config_without_tokenizer(
    const snapshot::Snapshot& snapshot);
/// Whether a config.json is that of a model that reads or writes text. False for what is no JSON.
[[nodiscard]] bool needs_tokenizer(std::string_view config_json);

}  // namespace weightfs::control
