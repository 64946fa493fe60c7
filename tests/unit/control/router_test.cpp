// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/router.hpp"

#include "control/json_codec.hpp"
#include "fake_operations.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <string>
#include <utility>
#include <vector>

using namespace weightfs;
using namespace weightfs::control;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Bench {
  tests::FakeOperations operations;
  Router router{operations, Log::silent()};

  Bench() {
    operations.state.with([](auto& s) {
      s.models = {{.name = "org/m"}, {.name = "pinned", .pinned = true}, {.name = "a:b"}};
    });
  }
  Response get(std::string target) { return router.handle({Method::kGet, std::move(target), ""}); }
  Response post(std::string target, std::string body = "") {
    return router.handle({Method::kPost, std::move(target), std::move(body)});
  }
  static std::string code(const Response& response) {
    return parse_json(response.body)["error"]["code"].get<std::string>();
  }
};

}  // namespace

TEST_CASE("each route reaches its operation") {
  Bench bench;
  CHECK(bench.get("/v1/status").status == 200);
  CHECK_THAT(bench.get("/v1/models").body, ContainsSubstring(R"({"models":[{"name":"org/m")"));
  CHECK_THAT(bench.get("/v1/models/org/m").body, ContainsSubstring(R"({"name":"org/m")"));
  CHECK(bench.get("/v1/models/org%2Fm").status == 200);
  CHECK(bench.get("/v1/models/a%3Ab").status == 200);
  CHECK(bench.get("/v1/fills").body == R"({"fills":[]})");
  (void)bench.get("/v1/models/org/m:progress");
  (void)bench.post("/v1/models", R"({"name":"new","source":"file:///x"})");
  (void)bench.post("/v1/models/org/m:update?cold=1");
  (void)bench.post("/v1/models/org/m:warm");
  (void)bench.post("/v1/models/org/m:pin", R"({"reason":"prod"})");
  (void)bench.post("/v1/models/org/m:unpin");
  (void)bench.post("/v1/models/org/m:evict?dry_run=1");
  (void)bench.post("/v1/models/org/m:evict?shared=1", "{}");
  (void)bench.post("/v1/models/org/m:verify");
  (void)bench.post("/v1/verify");
  (void)bench.post("/v1/import", R"({"directory":"/d","names":["org/m"],"dry_run":true})");
  (void)bench.get("/v1/why?path=/models/org/m/a%20b");
  (void)bench.post("/v1/unmount", R"({"lazy":true})");
  (void)bench.router.handle({Method::kDelete, "/v1/models/a%3Ab?dry_run=true", ""});
  CHECK(bench.operations.calls() ==
        std::vector<std::string>{"status", "progress org/m", "add new file:///x",
                                 "update org/m cold", "warm org/m", "pin org/m prod", "unpin org/m",
                                 "evict org/m dry", "evict shared org/m", "verify org/m", "verify ",
                                 "import /d org/m dry", "why /models/org/m/a b", "unmount lazy",
                                 "remove a:b dry"});
}

TEST_CASE("failures are JSON with a code and a fitting status") {
  Bench bench;
  const auto check = [](const Response& response, int status, const std::string& code) {
    CHECK(response.status == status);
    CHECK(Bench::code(response) == code);
  };
  check(bench.get("/v1/models/none"), 404, "not_found");
  check(bench.get("/v1/nothing"), 404, "not_found");
  check(bench.get("/"), 404, "not_found");
  check(bench.get("/v1/models/"), 404, "not_found");
  check(bench.get("/v1/models/org/m:dance"), 404, "not_found");
  check(bench.post("/v1/status"), 405, "invalid");
  check(bench.get("/v1/models/org/m:warm"), 405, "invalid");
  check(bench.get("/%zz"), 400, "invalid");
  check(bench.post("/v1/models", "not json"), 400, "invalid");
  check(bench.post("/v1/models", "{}"), 400, "invalid");
  check(bench.post("/v1/models", R"({"name":"x","source":"y","extra":1})"), 400, "invalid");
  check(bench.post("/v1/models", R"({"name":5,"source":"y"})"), 400, "invalid");
  check(bench.post("/v1/models", R"({"name":"x","source":"file:///missing"})"), 404, "not_found");
  check(bench.post("/v1/models/pinned:evict"), 409, "busy");
  check(bench.post("/v1/models/org/m:evict?dry_run=maybe"), 400, "invalid");
  check(bench.get("/v1/why"), 400, "invalid");
  check(bench.post("/v1/import"), 400, "invalid");
  check(bench.post("/v1/import", R"({"directory":"not/absolute"})"), 400, "invalid");
  check(bench.get("/v1/jobs/99"), 404, "not_found");
  check(bench.get("/v1/jobs/x"), 400, "invalid");
  check(bench.post("/v1/verify?wait=-1"), 400, "invalid");
}

TEST_CASE("what a request does not take is refused, and nothing is done") {
  Bench bench;
  struct Asked {
    Method method;
    std::string target;
  };
  const std::vector<Asked> all = {
      {Method::kGet, "/v1/status"},
      {Method::kGet, "/v1/fills"},
      {Method::kGet, "/v1/models"},
      {Method::kPost, "/v1/models"},
      {Method::kGet, "/v1/models/org/m"},
      {Method::kDelete, "/v1/models/org/m"},
      {Method::kGet, "/v1/models/org/m:progress"},
      {Method::kPost, "/v1/models/org/m:update"},
      {Method::kPost, "/v1/models/org/m:warm"},
      {Method::kPost, "/v1/models/org/m:pin"},
      {Method::kPost, "/v1/models/org/m:unpin"},
      {Method::kPost, "/v1/models/org/m:evict"},
      {Method::kPost, "/v1/models/org/m:verify"},
      {Method::kPost, "/v1/verify"},
      {Method::kPost, "/v1/import"},
      {Method::kGet, "/v1/why"},
      {Method::kGet, "/v1/leases"},
      {Method::kGet, "/v1/leases/job"},
      {Method::kPut, "/v1/leases/job"},
      {Method::kDelete, "/v1/leases/job"},
      {Method::kPost, "/v1/unmount"},
      {Method::kGet, "/v1/jobs/1"},
  };
  const auto refused = [&](const Asked& asked, const std::string& query, const std::string& body) {
    CAPTURE(asked.target, query, body);
    const Response response = bench.router.handle({asked.method, asked.target + query, body});
    CHECK(response.status == 400);
    CHECK(Bench::code(response) == "invalid");
    return parse_json(response.body)["error"]["message"].get<std::string>();
  };
  for (const Asked& asked : all) {
    CHECK_THAT(refused(asked, "?dryrun=1", ""), ContainsSubstring("\"dryrun\""));
    (void)refused(asked, "?=1", "");
    (void)refused(asked, "", R"({"dry_run":true})");
    (void)refused(asked, "", "not json");
    (void)refused(asked, "", "[]");
  }
  (void)refused({Method::kPost, "/v1/models/org/m:warm"}, "?wait=1", "");
  (void)refused({Method::kDelete, "/v1/models/org/m"}, "?shared=1", "");
  (void)refused({Method::kPost, "/v1/models/org/m:update"}, "?dry_run=1", "");
  CHECK(bench.operations.calls().empty());
}

TEST_CASE("a lease is put, read and deleted under its id") {
  Bench bench;
  const Response put = bench.router.handle(
      {Method::kPut, "/v1/leases/job-1",
       R"({"artifacts":["org/m","a@b"],"not_before":"n","until":"u","bandwidth":5,"priority":-2})"});
  CHECK(put.status == 200);
  const Json lease = parse_json(put.body);
  CHECK(lease["id"] == "job-1");
  CHECK(lease["artifacts"] == Json({"org/m", "a@b"}));
  CHECK(lease["bandwidth"] == 5);
  CHECK(lease["priority"] == -2);
  CHECK_FALSE(lease.contains("user"));  // nobody knows whom the request is from
  CHECK(parse_json(bench.get("/v1/leases").body)["leases"][0] == lease);
  CHECK(parse_json(bench.get("/v1/leases/job-1").body) == lease);
  CHECK(parse_json(bench.get("/v1/status").body)["leases"][0] == lease);
  CHECK(bench.router.handle({Method::kDelete, "/v1/leases/job-1", ""}).body == "{}");
  CHECK(bench.get("/v1/leases").body == R"({"leases":[]})");
  CHECK(bench.router.handle({Method::kDelete, "/v1/leases/job-1", ""}).status == 404);
  CHECK(bench.router.handle({Method::kPut, "/v1/leases", "{}"}).status == 405);
  CHECK(bench.operations.calls() == std::vector<std::string>{"lease job-1 org/m a@b from n until u",
                                                             "status", "end lease job-1"});
}

TEST_CASE("what takes long is answered 202 and found again under its job") {
  Bench bench;
  bench.operations.state.with([](auto& s) { s.gate_closed = true; });
  const Response started = bench.post("/v1/models/org/m:update?wait=0");
  REQUIRE(started.status == 202);
  const auto job = std::to_string(parse_json(started.body)["job"].get<int>());

  const Response joined = bench.post("/v1/models/org/m:update?wait=0");
  CHECK(std::to_string(parse_json(joined.body)["job"].get<int>()) == job);
  CHECK(bench.get("/v1/jobs/" + job + "?wait=0").status == 202);

  bench.operations.open_gate();
  const Response done = bench.get("/v1/jobs/" + job);
  CHECK(done.status == 200);
  CHECK(decode<api::UpdateResult>(done.body) == api::UpdateResult{"org/m", true, "old", "new"});
  const auto calls = bench.operations.calls();
  CHECK(calls == std::vector<std::string>{"update org/m"});
}

TEST_CASE("a failed job answers with its error") {
  Bench bench;
  bench.operations.state.with([](auto& s) { s.gate_closed = true; });
  const Response started = bench.post("/v1/models/none:update?wait=1");
  CHECK(started.status == 404);
}

TEST_CASE("every error code has a status of failure") {
  for (int code = 0; code <= static_cast<int>(Errc::kInternal); ++code) {
    CHECK(http_status(static_cast<Errc>(code)) >= 400);
  }
}
