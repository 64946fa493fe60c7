// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/server.hpp"

#include "control/json_codec.hpp"
#include "control/peer.hpp"
#include "control/router.hpp"
#include "fake_operations.hpp"
#include "raw_http.hpp"
#include "temporary_directory.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <unistd.h>
#include <future>
#include <optional>
#include <string>
#include <vector>

using namespace weightfs;
using namespace weightfs::control;
using namespace weightfs::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Bench {
  TemporaryDirectory directory;
  std::filesystem::path socket = directory.path() / "control.sock";
  FakeOperations operations;
  Router router{operations, Log::silent()};
  std::optional<Server> server;

  explicit Bench(ServerOptions options = {}) {
    operations.state.with([](auto& s) { s.models = {{.name = "org/m"}, {.name = "a/b:c%"}}; });
    server.emplace(ListenSocket(socket, 0600), router, options, Log::silent());
  }
};

}  // namespace

TEST_CASE("the server answers JSON over its unix socket") {
  Bench bench;
  const RawAnswer status = raw_request(bench.socket, "GET", "/v1/status");
  CHECK(status.status == 200);
  CHECK_THAT(status.head, ContainsSubstring("Content-Type: application/json"));
  CHECK_THAT(status.body, ContainsSubstring(R"("passthrough":{"active":false)"));
  CHECK(raw_request(bench.socket, "GET", "/v1/models/a%2Fb%3Ac%25").status == 200);
  CHECK(raw_request(bench.socket, "POST", "/v1/models", R"({"name":"x","source":"file:///y"})")
            .status == 200);
  CHECK(raw_request(bench.socket, "DELETE", "/v1/models/x").status == 200);
  CHECK(raw_request(bench.socket, "PUT", "/v1/models").status == 405);
  CHECK(raw_request(bench.socket, "GET", "/v1/models/none").status == 404);
}

TEST_CASE("a pin without an owner is of the user at the other end of the socket") {
  Bench bench;
  const auto owner = [&](const std::string& body) {
    const RawAnswer answer = raw_request(bench.socket, "POST", "/v1/models/org/m:pin", body);
    return parse_json(answer.body).at("pin_owner").get<std::string>();
  };
  CHECK(owner("") == user_name(::getuid()));
  CHECK(owner(R"({"owner":"the search team"})") == "the search team");
}

TEST_CASE("a body over the limit is refused and the server goes on") {
  Bench bench({.max_body = 1000});
  CHECK(raw_request(bench.socket, "POST", "/v1/models", std::string(1001, ' ')).status == 413);
  CHECK(raw_request(bench.socket, "POST", "/v1/models", std::string(1'000'000, ' ')).status == 413);
  const std::string exact = R"({"name":"x","source":"y"})";
  CHECK(
      raw_request(bench.socket, "POST", "/v1/models", exact + std::string(1000 - exact.size(), ' '))
          .status == 200);
  CHECK(bench.operations.calls() == std::vector<std::string>{"add x y"});
}

TEST_CASE("garbage on the socket harms nobody") {
  Bench bench({.idle_timeout = std::chrono::seconds(1)});
  const std::vector<std::string> pieces{std::string("\0\1\2\r\n\r\n", 7), "GET\r\n\r\n",
                                        "GET /v1/status HTTP/9.9\r\n\r\n",
                                        "GET /" + std::string(100'000, 'x') + " HTTP/1.1\r\n\r\n"};
  for (const std::string& garbage : pieces) {
    int status = 400;  // closed without an answer is just as well
    try {
      status = raw_exchange(bench.socket, garbage).status;
    } catch (const std::runtime_error&) {
    }
    CHECK(status >= 400);
  }
  {
    const Fd silent = connect_unix(bench.socket);
  }
  CHECK(raw_request(bench.socket, "GET", "/v1/status").status == 200);
}

TEST_CASE("requests that wait hold up nobody else") {
  Bench bench;
  bench.operations.state.with([](auto& s) { s.gate_closed = true; });
  std::vector<std::future<RawAnswer>> waiting;
  for (int i = 0; i < 20; ++i) {
    waiting.push_back(std::async(std::launch::async, [&] {
      return raw_request(bench.socket, "POST", "/v1/models/org/m:update?wait=30");
    }));
  }
  CHECK(raw_request(bench.socket, "GET", "/v1/status").status == 200);
  bench.operations.open_gate();
  for (auto& answer : waiting) CHECK(answer.get().status == 200);
}

TEST_CASE("stopping the server answers those who wait and removes the socket") {
  Bench bench;
  bench.operations.state.with([](auto& s) { s.gate_closed = true; });
  auto waiting = std::async(std::launch::async, [&] {
    return raw_request(bench.socket, "POST", "/v1/models/org/m:update?wait=30");
  });
  while (bench.operations.calls().empty()) std::this_thread::yield();  // it has arrived
  bench.server.reset();
  CHECK(waiting.get().status == 202);
  CHECK_FALSE(std::filesystem::exists(bench.socket));
}
