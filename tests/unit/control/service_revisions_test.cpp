// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/error.hpp"
#include "control/service.hpp"
#include "running_service.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <functional>
#include <optional>
#include <string>

using namespace weightfs;
using namespace weightfs::control;
using namespace weightfs::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::string kWeights(300'000, 'w');

std::optional<Errc> error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

/// A service that has "org/m", whose source has no digests.
struct Bench : RunningService {
  Bench() { (void)service.add({"org/m", source("m", "model.bin", kWeights)}, {}); }
};

}  // namespace

TEST_CASE("a model of text without its config or tokenizer is refused unless that is allowed") {
  RunningService running;
  const std::string source = running.source("bare", "model.safetensors", kWeights);
  (void)running.source("bare", "generation_config.json", "{}");
  CHECK_THROWS_WITH(running.service.add({"m", source}, {}), ContainsSubstring("config.json"));
  (void)running.source("bare", "config.json", R"({"architectures":["LlamaForCausalLM"]})");
  CHECK_THROWS_WITH(running.service.add({"m", source}, {}), ContainsSubstring("a tokenizer"));
  CHECK(running.catalog.list().empty());
  CHECK(
      running.service.add({.name = "m", .source = source, .allow_missing = true}, {}).file_count ==
      3);
  (void)running.source("bare", "tokenizer.json", "{}");
  CHECK(running.service.update("m", {}, {}).changed);
}

TEST_CASE("an update to an incomplete revision is refused unless that is allowed") {
  Bench bench;
  const Digest before = bench.catalog.find("org/m")->current;
  (void)bench.source("m", "x.safetensors.index.json", R"({"weight_map":{"a":"none.safetensors"}})");
  CHECK_THROWS_WITH(bench.service.update("org/m", {}, {}),
                    ContainsSubstring("none.safetensors") && ContainsSubstring("--allow-missing"));
  CHECK(bench.catalog.find("org/m")->current == before);
  CHECK(bench.service.update("org/m", {.missing = Missing::kAllowed}, {}).changed);
}

TEST_CASE("a rollback shows what was there before, and says what it costs") {
  Bench bench;
  (void)bench.fetch("org/m");
  const api::Model old = bench.service.model("org/m").model;
  CHECK(old.rollback.empty());
  CHECK(error_of([&] { (void)bench.service.rollback("org/m"); }) == Errc::kNotReady);
  (void)bench.source("m", "model.bin", "new");
  (void)bench.service.update("org/m", {.staging = Staging::kCold}, {});
  const api::Model updated = bench.service.model("org/m").model;
  CHECK(updated.confirmed == old.revision);
  CHECK(updated.rollback == "ready");
  const api::UpdateResult result = bench.service.rollback("org/m");
  CHECK(result.from == updated.revision);
  CHECK(result.to == old.revision);
  const api::Model back = bench.service.model("org/m").model;
  CHECK(back.complete);
  CHECK(back.rollback.empty());

  (void)bench.service.update("org/m", {.staging = Staging::kWarm}, {});
  CHECK(bench.service.confirm("org/m").confirmed == updated.revision);
  CHECK(bench.service.model("org/m").model.rollback.empty());
}
