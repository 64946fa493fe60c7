// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "catalog/leases.hpp"

#include "../store/store_fixture.hpp"
#include "base/error.hpp"
#include "base/file.hpp"

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

using namespace weightfs;
using catalog::check_lease_id;
using catalog::Lease;
using catalog::Leases;

namespace {

constexpr std::int64_t kStart = 1'700'000'000;  // of a ManualClock

const Digest kA = Digest::of("a");
const Digest kB = Digest::of("b");

struct State {
  void reopen() {
    leases.reset();
    leases = std::make_unique<Leases>(file, clock, Log::silent());
  }

  store::TemporaryDirectory directory;
  std::filesystem::path file = directory.path() / "leases.json";
  store::ManualClock clock;
  std::unique_ptr<Leases> leases = std::make_unique<Leases>(file, clock, Log::silent());
};

Lease lease(const std::string& id, std::int64_t until, const Digest& snapshot = kA) {
  return {.id = id,
          .artifacts = {{.text = "org/m", .snapshot = snapshot}},
          .not_before = kStart + 10,
          .until = until,
          .bandwidth = 1'000'000,
          .priority = 7};
}

std::optional<Errc> error_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("a lease holds its snapshot until it is over, over restarts") {
  State state;
  const Lease taken = lease("job-1", kStart + 60);
  state.leases->put(taken);
  for (int life = 0; life < 2; ++life) {
    CHECK(state.leases->find("job-1") == taken);
    CHECK(state.leases->list() == std::vector{taken});
    CHECK(state.leases->holds(kA));
    CHECK_FALSE(state.leases->holds(kB));
    state.clock.advance(std::chrono::seconds(29));
    state.reopen();
  }
  state.clock.advance(std::chrono::seconds(2));
  CHECK_FALSE(state.leases->find("job-1"));
  CHECK(state.leases->list().empty());
  CHECK_FALSE(state.leases->holds(kA));
  CHECK_FALSE(state.leases->remove("job-1"));
}

TEST_CASE("what is over is taken out of the file once") {
  State state;
  state.leases->put(lease("short", kStart + 30));
  state.leases->put(lease("long", kStart + 90));
  CHECK(state.leases->expire().empty());
  state.clock.advance(std::chrono::seconds(30));
  const auto over = state.leases->expire();
  REQUIRE(over.size() == 1);
  CHECK(over[0].id == "short");
  CHECK(state.leases->expire().empty());
  CHECK(read_file(state.file, 1 << 20).find("short") == std::string::npos);
  CHECK(state.leases->holds(kA));
}

TEST_CASE("a lease is renewed under its id, and ends when it is removed") {
  State state;
  state.leases->put(lease("job", kStart + 30));
  state.clock.advance(std::chrono::seconds(20));
  state.leases->put(lease("job", kStart + 90, kB));
  state.clock.advance(std::chrono::seconds(60));
  CHECK(state.leases->list().size() == 1);
  CHECK_FALSE(state.leases->holds(kA));
  CHECK(state.leases->holds(kB));
  CHECK(state.leases->remove("job"));
  CHECK_FALSE(state.leases->holds(kB));
  CHECK_FALSE(state.leases->remove("job"));
  state.reopen();
  CHECK(state.leases->list().empty());
}

TEST_CASE("who took a lease renews it and ends it, and nobody else, over restarts") {
  using May = catalog::LeaseAsker::May;
  const catalog::LeaseAsker ada{.user = 1000, .name = "ada"};
  const catalog::LeaseAsker bob{.user = 1001, .name = "bob"};
  const catalog::LeaseAsker root{.user = 0, .name = "root", .may = May::kAny};
  State state;
  CHECK(state.leases->put(lease("job", kStart + 30), ada) == Leases::Put::kTaken);
  state.reopen();
  CHECK(state.leases->find("job")->user == 1000U);
  CHECK(state.leases->find("job")->owner == "ada");
  for (const catalog::LeaseAsker& other : {bob, catalog::LeaseAsker{}}) {
    CHECK(error_of([&] { (void)state.leases->put(lease("job", kStart + 60), other); }) ==
          Errc::kPermission);
    CHECK(error_of([&] { (void)state.leases->remove("job", other); }) == Errc::kPermission);
  }
  CHECK(state.leases->find("job")->until == kStart + 30);
  // Renewed by root it is still hers, and for whom she says.
  CHECK(state.leases->put(lease("job", kStart + 60), root) == Leases::Put::kRenewed);
  CHECK(state.leases->find("job")->user == 1000U);
  CHECK(state.leases->find("job")->owner == "ada");
  Lease named = lease("job", kStart + 60);
  named.owner = "team-a";
  CHECK(state.leases->put(named, ada) == Leases::Put::kRenewed);
  CHECK(state.leases->find("job")->owner == "team-a");
  CHECK(state.leases->remove("job", root)->user == 1000U);
  // Over, it is anybody's.
  (void)state.leases->put(lease("job", kStart + 30), ada);
  state.clock.advance(std::chrono::seconds(30));
  CHECK(state.leases->put(lease("job", kStart + 60), bob) == Leases::Put::kTaken);
  CHECK(state.leases->find("job")->owner == "bob");
}

TEST_CASE("a lease of before its taker was written down is anybody's, until somebody renews it") {
  State state;
  const std::string old =
      R"({"version":1,"leases":[{"id":"job","artifacts":[{"artifact":"org/m","snapshot":")" +
      kA.hex() + R"("}],"not_before":1,"until":)" + std::to_string(kStart + 60) +
      R"(,"bandwidth":0,"priority":0}]})";
  write_file_durably(state.file, old);
  state.reopen();
  REQUIRE(state.leases->find("job"));
  CHECK_FALSE(state.leases->find("job")->user);
  CHECK(state.leases->put(lease("job", kStart + 90), {.user = 1000, .name = "ada"}) ==
        Leases::Put::kRenewed);
  CHECK(state.leases->find("job")->user == 1000U);
  CHECK(error_of([&] { (void)state.leases->remove("job", {.user = 1001}); }) == Errc::kPermission);
}

TEST_CASE("a lease that makes no sense is refused") {
  State state;
  const auto refused = [&](const Lease& bad) {
    return error_of([&] { state.leases->put(bad); }) == Errc::kInvalid;
  };
  CHECK(refused(lease("over", kStart)));
  CHECK(refused(lease("begins after its end", kStart + 60)));
  Lease bad = lease("job", kStart + 60);
  bad.not_before = kStart + 61;
  CHECK(refused(bad));
  bad = lease("job", kStart + 60);
  bad.artifacts.clear();
  CHECK(refused(bad));
  bad.artifacts.assign(Leases::kMostArtifacts + 1, {.text = "org/m", .snapshot = kA});
  CHECK(refused(bad));
  for (const std::string& id : {std::string(), std::string("a/b"), std::string("a:b"),
                                std::string(".a"), std::string(129, 'a'), std::string("\xff")}) {
    CAPTURE(id);
    CHECK(error_of([&] { check_lease_id(id); }) == Errc::kInvalid);
  }
  CHECK_FALSE(error_of([] { check_lease_id("Job_1.retry-" + std::string(116, '9')); }));
  CHECK(state.leases->list().empty());
}

TEST_CASE("there is a bound on leases, and those that are over do not count") {
  State state;
  catalog::LeaseMap many;  // written at once, as each put is an fsync
  for (std::size_t i = 0; i < Leases::kMost; ++i) {
    const Lease one = lease("job-" + std::to_string(i), kStart + (i == 0 ? 30 : 90));
    many.emplace(one.id, one);
  }
  catalog::write_leases(state.file, many);
  state.reopen();
  CHECK(error_of([&] { state.leases->put(lease("more", kStart + 90)); }) == Errc::kBusy);
  state.leases->put(lease("job-1", kStart + 95));  // renewed
  state.clock.advance(std::chrono::seconds(30));
  state.leases->put(lease("more", kStart + 90));
  CHECK(state.leases->list().size() == Leases::kMost);
}

TEST_CASE("another version is refused and left as it is, a damaged file is set aside") {
  State state;
  const std::string other = R"({"version":2,"leases":[]})";
  write_file_durably(state.file, other);
  CHECK(error_of([&] { state.reopen(); }) == Errc::kUnsupported);
  CHECK(read_file(state.file, 1 << 20) == other);
  for (const char* damaged : {"{", R"({"version":1,"leases":[{"id":"../x"}]})",
                              R"({"version":1,"leases":[{"id":"x","artifacts":7}]})"}) {
    write_file_durably(state.file, damaged);
    state.reopen();
    CHECK(state.leases->list().empty());
    CHECK(read_file(state.file.string() + ".damaged", 1 << 20) == damaged);
    CHECK_FALSE(std::filesystem::exists(state.file));
  }
}
