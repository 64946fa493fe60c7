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

#include <poll.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace weightfs;
using namespace weightfs::tests;
using Catch::Matchers::ContainsSubstring;
using namespace std::chrono_literals;

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

/// The error of `call`, made with the filesystem rights of another user, in this thread alone.
std::string said_as_nobody(const std::function<void()>& call) {
  constexpr uid_t kNobody = 65534;
  ::setfsgid(kNobody);
  ::setfsuid(kNobody);
  std::string said;
  try {
    call();
  } catch (const api::ClientError& error) {
    said = error.what();
  }
  ::setfsuid(0);
  ::setfsgid(0);
  return said;
}

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
  CHECK(client.add({.name = "new", .source = "file:///a b", .expect = "id"}).file_count == 4);
  CHECK(client.update("org/m").to == "new");
  CHECK(client.verify().corrupt.front().files.front() == "org/m/x");
  (void)client.verify("org/m");
  const auto imported = client.import_files({.directory = "/d", .names = {"a", "b"}, .link = true});
  CHECK(imported.taken.bytes == 7);
  CHECK(imported.files.front().how == "copied");
  CHECK(imported.faults.front().code == "permission");
  (void)client.update("org/m", {.cold = true, .allow_missing = true, .now = true});
  (void)client.warm("org/m");
  (void)client.progress("org/m");
  CHECK(client.pin("org/m", {.reason = "a \"good\" one"}).pin_reason == "a \"good\" one");
  (void)client.unpin("org/m");
  CHECK(client.put_lease("job", {.artifacts = {"org/m"}, .not_before = "n", .until = "u"})
            .missing_bytes == 5);
  CHECK(client.leases().size() == 1);
  CHECK(client.lease("job").at_risk);
  client.remove_lease("job");
  CHECK(client.evict("org/m", {.dry_run = true}).dry_run);
  CHECK(client.prune("org/m", {.keep = 1, .dry_run = true}).kept.front().kept == "confirmed");
  CHECK(client.prune().removed.size() == 1);
  CHECK_FALSE(client.remove("org/m").dry_run);
  CHECK(client.why("/models/x?y#z&q=1").state == "complete");
  client.unmount({.lazy = true});
  CHECK(bench.operations.calls() ==
        std::vector<std::string>{"status", "add new file:///a b expect id", "update org/m",
                                 "verify ", "verify org/m", "import /d a b link",
                                 "update org/m cold allow_missing now", "warm org/m",
                                 "progress org/m", "pin org/m a \"good\" one", "unpin org/m",
                                 "lease job org/m from n until u", "end lease job",
                                 "evict org/m dry", "prune org/m 1 dry", "prune  0", "remove org/m",
                                 "why /models/x?y#z&q=1", "unmount lazy"});
}

TEST_CASE("a long operation is followed to its end, with progress") {
  Bench bench;
  bench.operations.state.with([](auto& s) { s.gate_closed = true; });
  std::vector<api::JobProgress> seen;
  const auto result = bench.client.update("org/m", {}, [&](const api::JobProgress& progress) {
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

TEST_CASE("a daemon that does not answer is given up when the patience for the request is over") {
  const TemporaryDirectory directory;
  const std::string socket = (directory.path() / "s").string();
  const control::ListenSocket listening(socket, 0600);  // connections wait in its queue
  api::Client client({.socket = socket, .patience = 20ms});
  for (const std::function<void()>& call : std::vector<std::function<void()>>{
           [&] { (void)client.status(); }, [&] { (void)client.pin("org/m"); },
           [&] { (void)client.remove("org/m"); }, [&] { client.unmount(); }}) {
    try {
      call();
      FAIL("somebody answered");
    } catch (const api::ClientError& error) {
      CHECK(error.code() == api::ClientError::kUnreachable);
      CHECK_THAT(error.what(),
                 ContainsSubstring(socket) && ContainsSubstring("has not answered for 0."));
    }
  }
}

TEST_CASE("a deadline ends every call, also a long one") {
  const TemporaryDirectory directory;
  const std::string socket = (directory.path() / "s").string();
  const control::ListenSocket listening(socket, 0600);
  const auto began = std::chrono::steady_clock::now();
  api::Client client({.socket = socket, .deadline = began});
  CHECK(code_of([&] { (void)client.update("org/m"); }) == api::ClientError::kUnreachable);
  CHECK(code_of([&] { (void)client.evict("org/m"); }) == api::ClientError::kUnreachable);
  CHECK(std::chrono::steady_clock::now() - began < 10s);  // not 40 s and two minutes
}

TEST_CASE("a job that is not over by the deadline is left to the daemon") {
  Bench bench;
  bench.operations.state.with([](auto& s) { s.gate_closed = true; });
  api::Client client(
      {.socket = bench.socket.string(), .deadline = std::chrono::steady_clock::now()});
  CHECK(code_of([&] { (void)client.update("org/m"); }) == "timed_out");
  bench.operations.open_gate();
  CHECK(bench.client.update("org/m").changed);
}

TEST_CASE("a deadline that is over leaves a daemon that answers the time to do so") {
  Bench bench;
  api::Client client(
      {.socket = bench.socket.string(), .deadline = std::chrono::steady_clock::now() - 1s});
  CHECK(client.status().pid == 77);
}

TEST_CASE(
    "what a dying daemon had taken is asked of its successor, but for what may not be repeated") {
  Bench bench;
  bench.server.reset();
  const control::ListenSocket kept(bench.socket, 0600);  // as the keeper keeps it
  const auto die_over_a_request = [&] {
    pollfd asked{.fd = kept.fd().value(), .events = POLLIN, .revents = 0};  // servers unblock it
    ::poll(&asked, 1, 10'000);
    Fd(::accept(kept.fd().value(), nullptr, nullptr)).reset();
  };
  {
    const std::jthread daemons([&] {
      die_over_a_request();
      bench.server.emplace(control::ListenSocket(Fd(::dup(kept.fd().value()))), bench.router,
                           control::ServerOptions{}, Log::silent());
    });
    CHECK(bench.client.status().pid == 77);
  }
  CHECK(bench.operations.calls() == std::vector<std::string>{"status"});
  bench.server.reset();
  api::Client client({.socket = bench.socket.string()});
  const std::jthread daemon(die_over_a_request);
  CHECK(code_of([&] { (void)client.evict("org/m"); }) == api::ClientError::kUnreachable);
}

TEST_CASE("whoever may not connect is told who may") {
  if (::geteuid() != 0) SKIP("only root can become somebody who may not");
  Bench bench;
  std::filesystem::permissions(bench.directory.path(), std::filesystem::perms(0711));
  const auto told = [&] {
    REQUIRE(::chown(bench.socket.c_str(), 0, 54321) == 0);  // none that root may happen to be in
    ::chmod(bench.socket.c_str(), 0660);
    return said_as_nobody([&] { (void)bench.client.status(); });
  };
  CHECK_THAT(told(), ContainsSubstring("Permission denied; run it with sudo, or as a member of the "
                                       "group 54321"));
  std::filesystem::permissions(bench.directory.path(), std::filesystem::perms(0700));
  CHECK(told().ends_with("Permission denied; run it with sudo"));
}
