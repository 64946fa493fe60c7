// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "net/http_client.hpp"

#include "net/client_calls.hpp"
#include "net/scripted_server.hpp"

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <string>

using namespace std::chrono_literals;
using weightfs::Errc;
using weightfs::Error;
using namespace weightfs::net;
using weightfs::test::always;
using weightfs::test::answer;
using weightfs::test::failure_of;
using weightfs::test::get;
using weightfs::test::kLimit;
using Failure = weightfs::test::RequestFailure;
using weightfs::test::ScriptedServer;
using weightfs::test::SeenRequest;
using Connection = ScriptedServer::Connection;

TEST_CASE("redirects are followed, each hop seen by the server, the head asked for once") {
  ScriptedServer server([](const SeenRequest& request, Connection& connection) {
    if (request.target == "/a") {
      connection.send(answer(302, {{"Location", "/b?sig=1"}}, "moved"));
    } else if (request.target == "/b?sig=1") {
      connection.send(answer(307, {{"Location", "c"}}, ""));
    } else {
      connection.send(answer(200, {}, "body"));
    }
  });
  HttpClient client({});
  int heads = 0;
  std::string body;
  const ResponseHead head = client.perform(
      {.url = server.url("/a"), .headers = {{"Authorization", "Bearer t"}}},
      [&](const ResponseHead& seen) {
        ++heads;
        CHECK(seen.status == 200);
      },
      [&](std::span<const std::byte> data) {
        body.append(reinterpret_cast<const char*>(data.data()), data.size());
      },
      {});
  CHECK(heads == 1);
  CHECK(body == "body");
  CHECK(head.effective_url == server.url("/c"));
  CHECK(server.requests().size() == 3);
  CHECK(server.requests().at(2).header("authorization") == "Bearer t");
  CHECK(server.connections() == 1);
}

TEST_CASE("secrets are not sent to the host that a redirect leads to") {
  ScriptedServer cdn(always(answer(200, {}, "body")));
  ScriptedServer server(always(answer(302, {{"Location", cdn.url("/blob")}}, "")));
  HttpClient client({});
  const auto [head, body] =
      client.fetch({.url = server.url("/a"),
                    .headers = {{"Authorization", "Bearer t"}, {"If-Match", "\"e\""}},
                    .range = {{0, 3}}},
                   kLimit, {});
  CHECK(body == "body");
  const SeenRequest seen = cdn.requests().at(0);
  CHECK_FALSE(seen.header("authorization"));
  CHECK(seen.header("if-match") == "\"e\"");
  CHECK(seen.header("range") == "bytes=0-3");
}

TEST_CASE("redirects that do not end, or must not be followed, are refused") {
  int hop = 0;
  ScriptedServer server([&](const SeenRequest& request, Connection& connection) {
    std::string location;
    if (request.target == "/self") location = "/self";
    if (request.target == "/ping") location = "/pong";
    if (request.target == "/pong") location = "/ping";
    if (request.target.starts_with("/on")) location = "/on" + std::to_string(++hop);
    if (request.target == "/file") location = "file:///etc/passwd";
    if (request.target == "/none") return connection.send(answer(302, {}, "no location"));
    connection.send(answer(301, {{"Location", location}}, ""));
  });
  HttpClient client({});
  for (const char* path : {"/self", "/ping", "/on", "/file"}) {
    INFO(path);
    const Failure failure = failure_of([&] { get(client, server.url(path)); });
    CHECK(failure.code == Errc::kInvalid);
    CHECK_FALSE(failure.transient);
  }
  CHECK(hop == 11);
  CHECK(get(client, server.url("/none")) == "no location");
  CHECK(client.fetch({.url = server.url("/self"), .max_redirects = 0}, kLimit, {}).first.status ==
        301);
  CHECK(client.fetch({.method = Method::kPost, .url = server.url("/self")}, kLimit, {})
            .first.status == 301);
}

TEST_CASE("a redirect's endless body costs little") {
  ScriptedServer server([](const SeenRequest& request, Connection& connection) {
    if (request.target == "/b") return connection.send(answer(200, {}, "body"));
    connection.send(answer(302, {{"Location", "/b"}, {"Content-Length", "1000000000"}},
                           std::string(4 << 20, 'x')));
    connection.stall();
  });
  HttpClient client({});
  CHECK(get(client, server.url("/a")) == "body");
  CHECK(client.counters().bytes < 2 << 20);
}

TEST_CASE("a redirect whose body nobody knows the end of is not waited for") {
  ScriptedServer server([](const SeenRequest& request, Connection& connection) {
    if (request.target == "/b") return connection.send(answer(200, {}, "body"));
    connection.send("HTTP/1.1 302 Found\r\nLocation: /b\r\n\r\n");
    connection.stall();
  });
  HttpClient client({.stall_timeout = 60s});
  CHECK(get(client, server.url("/a")) == "body");
}
