// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/error.hpp"
#include "control/service.hpp"
#include "running_service.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>

using namespace weightfs;
using namespace weightfs::control;
using namespace weightfs::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::string kWeights(300'000, 'w');
constexpr const char* kBegin = "2099-12-31T00:00:00Z";
constexpr uid_t kRoot = 0;
constexpr const char* kEnd = "2100-01-01T00:00:00Z";

std::optional<Errc> error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

api::LeaseRequest request(const std::string& artifact) {
  return {.artifacts = {artifact}, .not_before = kBegin, .until = kEnd};
}

struct Bench : RunningService {
  Bench() { (void)service.add({"org/m", source("m", "model.bin", kWeights)}, {}); }
};

}  // namespace

TEST_CASE("taking a lease fetches what is missing, and keeps it from being taken away") {
  Bench bench;
  const api::Lease taken = bench.service.put_lease("job", request("org/m"), kRoot);
  CHECK(taken.artifacts == std::vector<std::string>{"org/m"});
  CHECK(taken.not_before == kBegin);
  CHECK(taken.until == kEnd);
  CHECK(taken.bytes == kWeights.size());
  CHECK_FALSE(taken.late);
  REQUIRE(eventually([&] { return bench.service.lease("job").complete; }));
  CHECK(bench.service.lease("job").missing_bytes == 0);
  CHECK(bench.service.status().leases == bench.service.leases());
  CHECK(error_of([&] { (void)bench.service.evict("org/m", Shared::kEvict, DryRun::kNo); }) ==
        Errc::kBusy);
  CHECK_THROWS_WITH(
      bench.service.remove("org/m", DryRun::kYes),
      ContainsSubstring("leased until 2100-01-01T00:00:00Z; 'weightfs lease rm job'"));
  bench.service.remove_lease("job", kRoot);
  CHECK(bench.service.leases().empty());
  CHECK(error_of([&] { bench.service.remove_lease("job", kRoot); }) == Errc::kNotFound);
  CHECK(error_of([&] { (void)bench.service.lease("job"); }) == Errc::kNotFound);
  CHECK(bench.service.evict("org/m", Shared::kKeep, DryRun::kNo).bytes == kWeights.size());
}

TEST_CASE("what a lease shares with others stays when they are evicted or removed") {
  Bench bench;
  (void)bench.service.add({"org/twin", bench.source("twin", "same.bin", kWeights)}, {});
  (void)bench.service.put_lease("job", request("org/m"), kRoot);
  REQUIRE(eventually([&] { return bench.service.lease("job").complete; }));
  REQUIRE(bench.fetch("org/twin").complete);
  CHECK(bench.service.evict("org/twin", Shared::kEvict, DryRun::kNo).shared_blobs == 1);
  CHECK(bench.service.remove("org/twin", DryRun::kNo).shared_blobs == 1);
  CHECK(bench.service.lease("job").complete);
}

TEST_CASE("a name is leased as what it showed, until the lease is renewed") {
  Bench bench;
  const std::string before = bench.service.model("org/m").model.key;
  (void)bench.service.put_lease("job", request("org/m"), kRoot);
  (void)bench.source("m", "config.json", "{}");
  REQUIRE(bench.service.update("org/m", {.staging = Staging::kCold}, {}).changed);
  CHECK(bench.service.lease("job").snapshots.front().key == before);
  const std::string after = bench.service.model("org/m").model.key;
  CHECK(bench.service.put_lease("job", request("org/m"), kRoot).snapshots.front().key == after);
  CHECK(bench.service.put_lease("old", request("org/m@" + before), kRoot).snapshots.front().key ==
        before);
  CHECK(bench.service.put_lease("id", request(after), kRoot).snapshots.front().key == after);
  CHECK(bench.service.leases().size() == 3);
}

TEST_CASE("a lease that cannot be understood is refused, and nothing is recorded") {
  Bench bench;
  const auto refused = [&](const std::string& id, const api::LeaseRequest& bad) {
    return error_of([&] { (void)bench.service.put_lease(id, bad, kRoot); });
  };
  CHECK(refused("a/b", request("org/m")) == Errc::kInvalid);
  CHECK(refused("job", request("org/none")) == Errc::kNotFound);
  CHECK(refused("job", request("org/m@none")) == Errc::kNotFound);
  CHECK(refused("job", request("\xff")) == Errc::kInvalid);
  CHECK(refused("job", {.artifacts = {}, .not_before = kBegin, .until = kEnd}) == Errc::kInvalid);
  CHECK(refused("job", {.artifacts = {"org/m"}, .not_before = kBegin, .until = ""}) ==
        Errc::kInvalid);
  CHECK(refused("job", {.artifacts = {"org/m"}, .not_before = "", .until = kEnd}) ==
        Errc::kInvalid);
  CHECK(refused("job", {.artifacts = {"org/m"}, .not_before = kEnd, .until = kBegin}) ==
        Errc::kInvalid);
  CHECK(
      refused("job", {.artifacts = {"org/m"}, .not_before = "2001-01-01", .until = "2001-01-02"}) ==
      Errc::kInvalid);
  CHECK(bench.service.leases().empty());
}

TEST_CASE("a lease that is not complete when its job may begin is late, and says why") {
  Bench bench;
  std::filesystem::remove_all(bench.source("m", "model.bin", "").substr(7));
  api::LeaseRequest begun = request("org/m");
  begun.not_before = "2001-01-01";
  (void)bench.service.put_lease("begun", begun, kRoot);
  (void)bench.service.put_lease("to-come", request("org/m"), kRoot);
  CHECK(bench.service.lease("begun").late);
  REQUIRE(
      eventually([&] { return !bench.service.lease("to-come").snapshots.front().error.empty(); }));
  CHECK(bench.service.lease("to-come").at_risk);
  CHECK_FALSE(bench.service.lease("to-come").late);
}

TEST_CASE("a lease is renewed and ended by the user who took it, and by root") {
  Bench bench;
  constexpr uid_t kAda = 54321;  // no user of this machine: shown by number
  const api::Lease taken = bench.service.put_lease("job", request("org/m"), kAda);
  CHECK(taken.user == kAda);
  CHECK(taken.owner == "54321");
  for (const std::optional<uid_t> other : {std::optional<uid_t>(54322), std::optional<uid_t>()}) {
    CHECK_THROWS_WITH(bench.service.put_lease("job", request("org/m"), other),
                      ContainsSubstring("the lease job was taken by user 54321"));
    CHECK(error_of([&] { bench.service.remove_lease("job", other); }) == Errc::kPermission);
  }
  api::LeaseRequest renewal = request("org/m");
  renewal.owner = "team-a";
  CHECK(bench.service.put_lease("job", renewal, kAda).owner == "team-a");
  const api::Lease renewed = bench.service.put_lease("job", request("org/m"), kRoot);
  CHECK(renewed.user == kAda);
  CHECK(renewed.owner == "team-a");
  renewal.owner = "\xff";
  CHECK(error_of([&] { (void)bench.service.put_lease("job", renewal, kAda); }) == Errc::kInvalid);
  bench.service.remove_lease("job", kAda);
  CHECK(bench.service.leases().empty());
}

TEST_CASE("where nothing is kept, nothing can be leased") {
  RunningService running(fetch::Keep::kMemoryOnly);
  (void)running.service.add({"m", running.source("m", "model.bin", kWeights)}, {});
  CHECK(error_of([&] { (void)running.service.put_lease("job", request("m"), kRoot); }) ==
        Errc::kUnsupported);
}
