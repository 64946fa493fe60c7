// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/required_files.hpp"

#include "base/error.hpp"
#include "control/json_codec.hpp"

#include <algorithm>
#include <array>
#include <set>

namespace weightfs::control {

namespace {

constexpr std::string_view kConfig = "config.json";
constexpr std::string_view kDiffusion = "diffusion_pytorch_model.safetensors.index.json";
/// Weights as Transformers names them, which may be those of anything ...
constexpr std::array<std::string_view, 2> kWeights{"model.safetensors",
                                                   "model.safetensors.index.json"};
/// ... and what lies beside them where they are a language model's.
constexpr std::array<std::string_view, 4> kLanguage{"tokenizer.json", "tokenizer_config.json",
                                                    "tokenizer.model", "generation_config.json"};
/// What the architectures that read or write text end in (the class names of Transformers).
constexpr std::array<std::string_view, 2> kTextArchitectures{"ForCausalLM",
                                                             "ForConditionalGeneration"};

std::string_view folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? "" : path.substr(0, slash + 1);
}

bool holds_weights_of_its_own(std::string_view path) {
  return path.find('/') == std::string_view::npos &&
         (path.ends_with(".safetensors") ||
          (path.starts_with("pytorch_model") && path.ends_with(".bin")));
}

/// tokenizer.json, tokenization_x.py, tekken.json, vocab.txt, merges.txt, spiece.model, x.tiktoken:
/// there are many kinds, and one that was overlooked would refuse a model that is whole.
bool may_be_tokenizer(std::string_view path) {
  return path.find("token") != std::string_view::npos || path.starts_with("tekken") ||
         path.starts_with("vocab") || path.starts_with("merges") || path.ends_with(".model") ||
         path.ends_with(".spm");
}

}  // namespace

std::optional<std::string> missing_config(const snapshot::Snapshot& snapshot) {
  const auto has = [&](std::string_view folder, std::string_view name) {
    return snapshot.find(std::string(folder).append(name)) != nullptr;
  };
  std::set<std::string_view> folders;
  for (const snapshot::File& file : snapshot.files()) {
    const std::string_view folder = folder_of(file.path);
    const std::string_view name = std::string_view(file.path).substr(folder.size());
    const bool language = std::ranges::find(kWeights, name) != kWeights.end() &&
                          std::ranges::any_of(kLanguage, [&](std::string_view beside) {
                            return has(folder, beside);
                          });
    if (language || name == kDiffusion) folders.insert(folder);
  }
  for (const std::string_view folder : folders) {
    if (!has(folder, kConfig)) return std::string(folder).append(kConfig);
  }
  return std::nullopt;
}

std::optional<std::size_t> config_without_tokenizer(const snapshot::Snapshot& snapshot) {
  bool weights = false;
  for (const snapshot::File& file : snapshot.files()) {
    if (may_be_tokenizer(file.path)) return std::nullopt;
    weights = weights || holds_weights_of_its_own(file.path);
  }
  const auto config = snapshot.index_of(kConfig);
  if (!weights || !config || snapshot.files()[*config].size > kMaxModelConfig) return std::nullopt;
  return config;
}

bool needs_tokenizer(std::string_view config_json) {
  try {
    const Json json = parse_json(config_json);
    const auto architectures = json.is_object() ? json.find("architectures") : json.end();
    if (architectures == json.end() || !architectures->is_array()) return false;
    return std::ranges::any_of(*architectures, [](const Json& architecture) {
      return architecture.is_string() &&
             std::ranges::any_of(kTextArchitectures, [&](std::string_view end) {
               return architecture.get_ref<const std::string&>().ends_with(end);
             });
    });
  } catch (const Error&) {
    return false;
  }
}

}  // namespace weightfs::control
