// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "weightfs/client.hpp"

#include "base/log.hpp"
#include "control/router.hpp"
#include "control/server.hpp"
#include "fake_operations.hpp"
#include "temporary_directory.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

using namespace weightfs;
using namespace weightfs::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Bench {
  TemporaryDirectory directory;
  std::filesystem::path socket = directory.path() / "control.sock";
  FakeOperations operations;
  control::Router router{operations, Log::silent()};
  std::optional<control::Server> server;
  api::Client client{{.socket = socket.string()}};

  Bench() {
    operations.state.with([](auto& s) {
      s.models = {{.name = "org/m", .file_count = 2}, {.name = "strange: 100%/\xff"}};
      s.files = {{.path = "bytes-\xfe", .size = 5}};
      s.status.pid = 77;
      s.status.fills = {{.name = "org/m", .path = "x"}};
      s.verified = {.blobs = 3, .bytes = 30, .corrupt = {{.sha256 = "ab", .files = {"org/m/x"}}}};
      s.why = {.path = "/models/x", .state = "complete"};
    });
    server.emplace(control::ListenSocket(socket, 0600), router, control::ServerOptions{},
                   Log::silent());
  }
};

std::string code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const api::ClientError& error) {
    return error.code();
  }
  return "none";
}

}  // namespace

TEST_CASE("every call of the client reaches its operation and brings the value back") {
  Bench bench;
  api::Client& client = bench.client;
  CHECK(client.status().pid == 77);
  CHECK(client.fills().size() == 1);
  CHECK(client.models().size() == 2);
  CHECK(client.model("org/m").files.front().path == "bytes-\xfe");
  CHECK(client.model("org/m").model.file_count == 2);
  CHECK(client.model("strange: 100%/\xff").model.name == "strange: 100%/\xff");
  CHECK(client.add({.name = "new", .source = "file:///a b"}).file_count == 4);
  CHECK(client.update("org/m").to == "new");
  CHECK(client.verify().corrupt.front().files.front() == "org/m/x");
  (void)client.verify("org/m");
  (void)client.update("org/m", true);
  (void)client.warm("org/m");
  (void)client.progress("org/m");
  CHECK(client.pin("org/m", {.reason = "a \"good\" one"}).pin_reason == "a \"good\" one");
  (void)client.unpin("org/m");
  CHECK(client.evict("org/m", {.dry_run = true}).dry_run);
  CHECK_FALSE(client.remove("org/m").dry_run);
  CHECK(client.why("/models/x?y#z&q=1").state == "complete");
  client.unmount({.lazy = true});
  CHECK(bench.operations.calls() ==
        std::vector<std::string>{"status", "add new file:///a b", "update org/m", "verify ",
                                 "verify org/m", "update org/m cold", "warm org/m",
                                 "progress org/m", "pin org/m a \"good\" one", "unpin org/m",
                                 "evict org/m dry", "remove org/m", "why /models/x?y#z&q=1",
                                 "unmount lazy"});
}

TEST_CASE("a long operation is followed to its end, with progress") {
  Bench bench;
  bench.operations.state.with([](auto& s) { s.gate_closed = true; });
  std::vector<api::JobProgress> seen;
  const auto result = bench.client.update("org/m", false, [&](const api::JobProgress& progress) {
    seen.push_back(progress);
    bench.operations.open_gate();
  });
  CHECK(result.changed);
  REQUIRE_FALSE(seen.empty());
  CHECK(seen.back() == api::JobProgress{"fetching", 5, 10});
}

TEST_CASE("refusals come back with their code and sentence") {
  Bench bench;
  CHECK(code_of([&] { (void)bench.client.model("none"); }) == "not_found");
  CHECK(code_of([&] { (void)bench.client.update("none"); }) == "not_found");
  bench.operations.state.with([](auto& s) { s.mount_busy = true; });
  CHECK(code_of([&] { bench.client.unmount(); }) == "busy");
  try {
    (void)bench.client.progress("none");
    FAIL("accepted");
  } catch (const api::ClientError& error) {
    CHECK(std::string(error.what()) == "there is no model none");
  }
}

TEST_CASE("without a daemon the client says which socket it tried") {
  const TemporaryDirectory directory;
  const std::string socket = (directory.path() / "none.sock").string();
  api::Client client({.socket = socket});
  try {
    (void)client.status();
    FAIL("somebody answered");
  } catch (const api::ClientError& error) {
    CHECK(error.code() == api::ClientError::kUnreachable);
    CHECK_THAT(error.what(), ContainsSubstring(socket));
  }
}

TEST_CASE("a daemon that goes away is unreachable, one that comes back is not") {
  Bench bench;
  (void)bench.client.status();
  bench.server.reset();
  CHECK(code_of([&] { (void)bench.client.status(); }) == api::ClientError::kUnreachable);
  bench.server.emplace(control::ListenSocket(bench.socket, 0600), bench.router,
                       control::ServerOptions{}, Log::silent());
  CHECK(bench.client.status().pid == 77);
}
