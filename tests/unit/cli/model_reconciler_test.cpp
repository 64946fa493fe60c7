// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/model_reconciler.hpp"

#include "../control/fake_operations.hpp"
#include "../control/temporary_directory.hpp"
#include "base/clock.hpp"

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <string>
#include <tuple>
#include <vector>

using namespace weightfs;
using namespace weightfs::tests;
using namespace std::chrono_literals;

namespace {

struct Bench {
  TemporaryDirectory directory;
  SystemClock clock;
  catalog::Catalog catalog{directory.path() / "state", clock, Log::silent()};
  FakeOperations operations;
  std::vector<cli::ModelSetting> models{{"org/good", "file:///there", "flag --model"},
                                        {"org/typo", "file:///missing", "flag --model"},
                                        {"org/slow", "http://host/away", "the file"}};
  bool read = false;
  [[nodiscard]] cli::ModelReconciler::Parts parts() {
    return {
        .service = operations, .catalog = catalog, .is_read = [this](const auto&) { return read; }};
  }
};

}  // namespace

TEST_CASE("models that could not be added are told with their reasons, in their order") {
  Bench bench;
  const cli::ModelReconciler adder(bench.parts(), bench.models, Log::silent());
  adder.wait_until_tried(30s);
  CHECK(adder.missing() ==
        std::vector<api::MissingModel>{{"org/typo", {"not_found", "no such source"}, false},
                                       {"org/slow", {"unavailable", "no answer"}, true}});
}

TEST_CASE("what became of each change is told") {
  using Done = cli::ModelReconciler::Done;
  Bench bench;
  const cli::ModelReconciler reconciler(bench.parts(), bench.models, Log::silent());
  reconciler.wait_until_tried(30s);
  std::vector<std::tuple<std::string, Done, std::string>> told;
  for (const auto& outcome : reconciler.outcomes()) {
    told.emplace_back(outcome.change.name, outcome.done, outcome.reason);
  }
  CHECK(told == std::vector<std::tuple<std::string, Done, std::string>>{
                    {"org/good", Done::kYes, ""},
                    {"org/typo", Done::kNever, "no such source"},
                    {"org/slow", Done::kLater, "no answer"}});
}

TEST_CASE("a model whose source has not answered is missing for the time being") {
  Bench bench;
  bench.models.pop_back();
  bench.operations.state.with([](auto& s) { s.gate_closed = true; });
  {
    const cli::ModelReconciler adder(bench.parts(), bench.models, Log::silent());
    const std::vector<api::MissingModel> missing = adder.missing();
    REQUIRE(missing.size() == 2);
    CHECK(missing[0].error.code == "not_ready");
    CHECK(missing[1].retrying);
    bench.operations.open_gate();
    adder.wait_until_tried(30s);
    CHECK(adder.missing().size() == 1);
  }
}
