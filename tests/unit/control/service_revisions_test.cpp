// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/error.hpp"
#include "control/service.hpp"
#include "running_service.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

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

TEST_CASE("add takes the snapshot that was named, and nothing else") {
  Bench bench;
  (void)bench.fetch("org/m");
  const api::Model model = bench.service.model("org/m").model;
  REQUIRE(model.known_revisions.size() == 1);
  const std::string id = model.known_revisions[0].snapshot;
  const std::string other(64, 'f');
  CHECK(id == model.snapshot);
  CHECK(model.known_revisions[0].reference == model.source + "@" + id);

  // Elsewhere, where nothing is known of it yet.
  RunningService node;
  const std::string source = node.source("m", "model.bin", kWeights);
  const auto add = [&](const std::string& name, const std::string& from,
                       const std::string& expect) {
    return node.service.add({.name = name, .source = from, .expect = expect}, {});
  };
  CHECK(error_of([&] { add("x", source, other); }) == Errc::kChanged);
  CHECK(error_of([&] { add("x", source + "@" + other, ""); }) == Errc::kChanged);
  CHECK(error_of([&] { add("x", source + "@" + id, other); }) == Errc::kChanged);
  CHECK(error_of([&] { add("x", source, "abc"); }) == Errc::kInvalid);
  CHECK(node.catalog.list().empty());
  CHECK(node.catalog.snapshots().empty());
  CHECK_FALSE(std::filesystem::exists(node.blob(kWeights)));

  CHECK(add("a", source, id).snapshot == id);
  CHECK(add("b", source + "@" + id, "").snapshot == id);
  CHECK(add("c", source + "@" + node.service.model("a").model.key, "").snapshot == id);
  CHECK(add("b", source + "@" + id, id).snapshot == id);
  CHECK(error_of([&] { add("b", source, ""); }) == Errc::kBusy);
  CHECK(error_of([&] { add("b", source + "@" + id, other); }) == Errc::kBusy);

  CHECK(error_of([&] { (void)node.service.resource({"a", source + "@" + other}, {}); }) ==
        Errc::kChanged);
  CHECK_FALSE(node.service.update("b", {}, {}).changed);
  (void)node.source("m", "model.bin", "other");
  CHECK(error_of([&] { (void)node.service.update("b", {}, {}); }) == Errc::kChanged);
  CHECK(node.service.model("b").model.snapshot == id);
  CHECK(node.catalog.find("b")->revisions.size() == 1);
}

TEST_CASE("where nothing is kept, what has no digests cannot be proven") {
  RunningService node(fetch::Keep::kMemoryOnly);
  const std::string source = node.source("m", "model.bin", kWeights);
  const std::string id(64, 'f');
  CHECK(error_of([&] {
          (void)node.service.add({.name = "m", .source = source, .expect = id}, {});
        }) == Errc::kUnsupported);
}

TEST_CASE("require_digest refuses what may change, unless it is named") {
  RunningService node(fetch::Keep::kStore, RunningService::Disk::kGood, true);
  const std::string source = node.source("m", "model.bin", kWeights);
  CHECK_THROWS_WITH(node.service.add({.name = "m", .source = source}, {}),
                    ContainsSubstring("require_digest") && ContainsSubstring("--expect"));
  CHECK(node.catalog.list().empty());
  const auto snapshot = [&](const std::string& content) {
    return snapshot::Snapshot(
        source, "", {{.path = "model.bin", .size = content.size(), .sha256 = Digest::of(content)}});
  };
  const std::string id = snapshot(kWeights).id()->hex();
  CHECK(node.service.add({.name = "m", .source = source, .expect = id}, {}).snapshot == id);
  (void)node.source("m", "model.bin", "other");
  CHECK(error_of([&] { (void)node.service.update("m", {}, {}); }) == Errc::kInvalid);
  CHECK(node.service.model("m").model.snapshot == id);
}

TEST_CASE("the flip waits for who is loading, but not with --now, and a rollback never does") {
  Bench bench;
  bench.mount.load(3);
  std::vector<std::string> stages;
  const Job job{.report = [&](const api::JobProgress& p) { stages.push_back(p.stage); }};
  (void)bench.source("m", "model.bin", "two");
  const api::UpdateResult waited = bench.service.update("org/m", {.staging = Staging::kCold}, job);
  CHECK(waited.changed);
  CHECK(waited.loader.empty());
  CHECK(std::ranges::count(stages, "waiting for a loader") == 3);

  bench.mount.load(1000);
  (void)bench.source("m", "model.bin", "three");
  const api::UpdateResult now =
      bench.service.update("org/m", {.staging = Staging::kCold, .flip = Flip::kNow}, {});
  CHECK(now.loader == "a pod");
  CHECK(bench.service.rollback("org/m").loader == "a pod");
}

TEST_CASE("prune takes the revisions that nobody needs, and what only they had") {
  Bench bench;
  std::vector<std::string> contents{kWeights};
  (void)bench.fetch("org/m");
  for (const char* next : {"two", "three", "four"}) {
    contents.emplace_back(next);
    (void)bench.source("m", "model.bin", next);
    (void)bench.service.update("org/m", {}, {});
  }
  const auto there = [&] {
    std::vector<bool> all;
    for (const std::string& content : contents) {
      all.push_back(std::filesystem::exists(bench.blob(content)));
    }
    return all;
  };
  REQUIRE(there() == std::vector<bool>{true, true, true, true});
  const api::Pruned asked = bench.service.prune("org/m", 0, DryRun::kYes);
  CHECK(asked.removed.size() == 2);
  CHECK(asked.blobs == 2);
  REQUIRE(asked.kept.size() == 1);
  CHECK(asked.kept.front().kept == "confirmed");
  CHECK(there() == std::vector<bool>{true, true, true, true});

  const api::Pruned kept = bench.service.prune("", 1, DryRun::kNo);
  CHECK(kept.removed.size() == 1);
  CHECK(kept.bytes == 3);
  CHECK(there() == std::vector<bool>{true, false, true, true});
  CHECK(bench.service.prune("", 0, DryRun::kNo).removed.size() == 1);
  CHECK(there() == std::vector<bool>{true, false, false, true});
  CHECK(bench.service.model("org/m").model.revisions == 2);
  CHECK(bench.service.rollback("org/m").changed);
  CHECK(bench.service.prune("", 0, DryRun::kNo).removed.size() == 1);
  CHECK(there() == std::vector<bool>{true, false, false, false});
  CHECK(error_of([&] { (void)bench.service.prune("none", 0, DryRun::kNo); }) == Errc::kNotFound);
}
