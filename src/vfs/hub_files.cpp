// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "vfs/hub_files.hpp"

#include "base/error.hpp"
#include "snapshot/hub_reference.hpp"
#include "snapshot/lfs_pointer.hpp"
#include "snapshot/mirrored_validator.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace weightfs::vfs {

namespace {

using snapshot::File;
using snapshot::Snapshot;

// What from_pretrained of transformers, diffusers, peft and sentence-transformers asks for beside
// what it needs. (transformers/utils/__init__.py and utils/hub.py)
constexpr std::array kOptional{
    "adapter_config.json",
    "adapter_model.bin",
    "adapter_model.safetensors",
    "added_tokens.json",
    "audio_tokenizer_config.json",
    "chat_template.jinja",
    "chat_template.json",
    "config_sentence_transformers.json",
    "feature_extractor_config.json",
    "generation_config.json",
    "image_processor_config.json",
    "merges.txt",
    "model.safetensors",
    "model.safetensors.index.json",
    "model_index.json",
    "modules.json",
    "preprocessor_config.json",
    "processor_config.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
    "sentence_bert_config.json",
    "special_tokens_map.json",
    "spiece.model",
    "tekken.json",
    "tiktoken.model",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "video_preprocessor_config.json",
    "vocab.json",
    "vocab.txt",
};
static_assert(std::ranges::is_sorted(kOptional, {},
                                     [](const char* name) { return std::string_view(name); }));

/// git's id, where the source told of it.
std::optional<std::string> git_id(const File& file) {
  const auto mirrored = snapshot::MirroredValidator::parse(file.validator);
  try {
    return snapshot::HubVersion::parse(mirrored ? mirrored->inner : file.validator).blob;
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool is_in_lfs(const File& file, std::string_view blob) {
  return snapshot::is_lfs_pointer(blob, *file.sha256, file.size);
}

}  // namespace

HubFiles::HubFiles(const Snapshot& snapshot) {
  for (const File& file : snapshot.files()) {
    const auto blob = git_id(file);
    if (!blob || !file.sha256) return;
    etags_.push_back(is_in_lfs(file, *blob) ? file.sha256->hex() : *blob);
  }
  for (std::uint32_t i = 0; i < etags_.size(); ++i) by_etag_.push_back(i);
  const auto etag_of = [&](std::uint32_t file) -> const std::string& { return etags_[file]; };
  std::ranges::sort(by_etag_, {}, [&](std::uint32_t file) {
    return std::pair<const std::string&, std::uint32_t>(etags_[file], file);
  });
  const auto again = std::ranges::unique(by_etag_, {}, etag_of);
  by_etag_.erase(again.begin(), again.end());
  tree_size_ = tree_text(snapshot, *this).size();
  complete_ = true;
}

std::optional<std::uint32_t> HubFiles::find(std::string_view etag) const {
  const auto etag_of = [&](std::uint32_t file) { return std::string_view(etags_[file]); };
  const auto found = std::ranges::lower_bound(by_etag_, etag, {}, etag_of);
  if (found == by_etag_.end() || etags_[*found] != etag) return std::nullopt;
  return *found;
}

std::string tree_text(const Snapshot& snapshot, const HubFiles& files) {
  using Json = nlohmann::ordered_json;
  Json entries = Json::object();
  for (std::size_t i = 0; i < snapshot.files().size(); ++i) {
    const File& file = snapshot.files()[i];
    Json entry = {{"size", file.size}, {"blob_id", git_id(file).value_or("")}};
    if (const std::string& etag = files.etag(i); etag.size() == 2 * Digest::kSize) {
      entry["lfs_sha256"] = etag;
      entry["lfs_size"] = file.size;
    }
    // Not by name: that looks through all that are there.
    entries.get_ref<Json::object_t&>().emplace_back(file.path, std::move(entry));
  }
  const Json tree = {{"format_version", 1}, {"files", std::move(entries)}};
  return tree.dump(1, ' ', true, Json::error_handler_t::replace);
}

std::string link_target(std::string_view path, std::string_view etag) {
  std::string target = "../../";  // from snapshots/<commit>/
  for (const char c : path) {
    if (c == '/') target += "../";
  }
  return target.append("blobs/").append(etag);
}

std::vector<std::string> absent_files(const Snapshot& snapshot) {
  std::vector<std::string> absent;
  for (const char* name : kOptional) {
    if (!snapshot.find(name)) absent.emplace_back(name);
  }
  return absent;
}

}  // namespace weightfs::vfs
