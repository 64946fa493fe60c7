// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/required_files.hpp"

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

TEST_CASE("weights of the Transformers or Diffusers layout need their config.json beside them") {
  const std::string index = "model.safetensors.index.json";
  CHECK(missing_config(snapshot_of({index, "tokenizer.json"})) == "config.json");
  CHECK_FALSE(missing_config(snapshot_of({index, "tokenizer.json", "config.json"})));
  CHECK(missing_config(snapshot_of(
            {"config.json", "sub/" + index, "sub/generation_config.json"})) == "sub/config.json");
  CHECK(missing_config(snapshot_of({"unet/diffusion_pytorch_model.safetensors.index.json"})) ==
        "unet/config.json");
  CHECK(missing_config(snapshot_of({"model.safetensors", "tokenizer.json"})) == "config.json");
  CHECK_FALSE(missing_config(snapshot_of({"model.safetensors", "tokenizer.json", "config.json"})));
}

TEST_CASE("a tree that does not say which loader reads it needs no config.json") {
  for (const std::vector<std::string>& paths :
       {std::vector<std::string>{},
        {"model.safetensors"},
        {"model.gguf", "tokenizer.json"},
        {"model.bin", "tokenizer.json"},
        {"adapter_model.safetensors", "tokenizer.json"},
        {"model.safetensors.index.json", "model-1.safetensors"},
        {"consolidated.safetensors.index.json", "params.json", "tokenizer.json"}}) {
    CHECK_FALSE(missing_config(snapshot_of(paths)));
  }
}

TEST_CASE("only a config.json beside weights, without anything like a tokenizer, is looked into") {
  const auto lacking = snapshot_of({"config.json", "model.safetensors"});
  CHECK(config_without_tokenizer(lacking) == lacking.index_of("config.json"));
  CHECK(config_without_tokenizer(snapshot_of({"config.json", "pytorch_model-1.bin"})));
  CHECK_FALSE(config_without_tokenizer(snapshot_of({"config.json"})));
  CHECK_FALSE(config_without_tokenizer(snapshot_of({"model.safetensors"})));
  CHECK_FALSE(config_without_tokenizer(
      snapshot_of({"config.json", "model.safetensors"}, kMaxModelConfig + 1)));
  for (const char* tokenizer :
       {"tokenizer.json", "tokenizer_config.json", "tokenization_x.py", "tekken.json", "vocab.txt",
        "merges.txt", "spiece.model", "qwen.tiktoken", "tokenizer/vocab.json"}) {
    CAPTURE(tokenizer);
    CHECK_FALSE(
        config_without_tokenizer(snapshot_of({"config.json", "model.safetensors", tokenizer})));
  }
}

TEST_CASE("a model of text needs a tokenizer, by its architecture") {
  CHECK(needs_tokenizer(R"({"architectures":["LlamaForCausalLM"]})"));
  CHECK(needs_tokenizer(R"({"architectures":["X","T5ForConditionalGeneration"]})"));
  for (const char* config :
       {R"({"architectures":["ViTForImageClassification"]})", R"({"architectures":"ForCausalLM"})",
        R"({"architectures":[1]})", "{}", "[]", "{", ""}) {
    CAPTURE(config);
    CHECK_FALSE(needs_tokenizer(config));
  }
}
