// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "net/http_client.hpp"

#include "base/error.hpp"
#include "net/client_calls.hpp"
#include "net/scripted_server.hpp"

#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <filesystem>
#include <future>
#include <stdexcept>
#include <string>

using namespace std::chrono_literals;
using weightfs::Errc;
using weightfs::Error;
using weightfs::TransientError;
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

namespace {

const HttpClientOptions kImpatient{.connect_timeout = 20s, .stall_timeout = 100ms};

}  // namespace

TEST_CASE("one connection serves many requests") {
  ScriptedServer server(always(answer(200, {}, "body")));
  HttpClient client({});
  for (int i = 0; i < 5; ++i) CHECK(get(client, server.url("/a")) == "body");
  CHECK(server.connections() == 1);
  CHECK(client.counters().connections == 1);
  CHECK(client.counters().requests == 5);
  CHECK(client.counters().bytes == 20);
}

TEST_CASE("requests at the same time have a connection each, and all are kept") {
  std::promise<void> both;
  std::atomic<int> waiting = 0;
  const std::shared_future<void> released = both.get_future().share();
  ScriptedServer server([&](const SeenRequest& request, Connection& connection) {
    if (request.target == "/wait") {
      if (++waiting == 2) both.set_value();
      released.wait();
    }
    connection.send(answer(200, {}, request.target));
  });
  HttpClient client({});
  auto other = std::async(std::launch::async, [&] { return get(client, server.url("/wait")); });
  CHECK(get(client, server.url("/wait")) == "/wait");
  CHECK(other.get() == "/wait");
  CHECK(get(client, server.url("/b")) == "/b");
  CHECK(server.connections() == 2);
}

TEST_CASE("a connection that the server closed while it was idle is not an error") {
  ScriptedServer server([](const SeenRequest&, Connection& connection) {
    connection.send(answer(200, {}, "body"));
    connection.close();
  });
  HttpClient client({});
  for (int i = 0; i < 3; ++i) CHECK(get(client, server.url("/a")) == "body");
  CHECK(client.counters().connections == 3);
}

TEST_CASE("a connection is not used again after its idle time, or beyond the limit") {
  ScriptedServer server(always(answer(200, {}, "body")));
  SECTION("idle time") {
    HttpClient client({.idle_timeout = 0ms});
    get(client, server.url("/a"));
    get(client, server.url("/a"));
    CHECK(client.counters().connections == 2);
  }
  SECTION("limit") {
    HttpClient client({.max_idle_connections = 0});
    get(client, server.url("/a"));
    get(client, server.url("/a"));
    CHECK(client.counters().connections == 2);
  }
}

TEST_CASE("a request asks for plain bytes over HTTP/1.1 and sends what it was given") {
  ScriptedServer server(always(answer(206, {{"Content-Range", "bytes 5-9/20"}}, "56789")));
  HttpClient client({.user_agent = "weightfs/test"});
  const auto [head, body] =
      client.fetch({.url = server.url("/a%20b?q=1"),
                    .headers = {{"If-Match", "\"e\""}, {"Authorization", "Bearer t"}},
                    .range = {{5, 9}}},
                   kLimit, {});
  CHECK(head.status == 206);
  CHECK(head.header("content-range") == "bytes 5-9/20");
  CHECK_FALSE(head.header("etag"));
  CHECK(body == "56789");
  const SeenRequest seen = server.requests().at(0);
  CHECK(seen.target == "/a%20b?q=1");
  CHECK(seen.header("range") == "bytes=5-9");
  CHECK(seen.header("accept-encoding") == "identity");
  CHECK(seen.header("if-match") == "\"e\"");
  CHECK(seen.header("authorization") == "Bearer t");
  CHECK(seen.header("user-agent") == "weightfs/test");
}

TEST_CASE("HEAD has a length and no body") {
  ScriptedServer server(always("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"));
  HttpClient client({});
  for (int i = 0; i < 2; ++i) {
    const auto [head, body] =
        client.fetch({.method = Method::kHead, .url = server.url("/a")}, 10, {});
    CHECK(head.header("content-length") == "1000");
    CHECK(body.empty());
  }
  CHECK(server.connections() == 1);
}

TEST_CASE("bodies go up with POST, PUT and DELETE, over a unix socket too") {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("weightfs-net-" + std::to_string(::getpid()));
  ScriptedServer server(
      [](const SeenRequest& request, Connection& connection) {
        connection.send(answer(200, {}, request.method + " " + request.body));
      },
      path);
  HttpClient client({.unix_socket = path});
  const std::string big(300'000, 'x');
  const auto send = [&](Method method, const std::string& body) {
    return client.fetch({.method = method, .url = "http://weightfs/v1", .body = body}, kLimit, {})
        .second;
  };
  CHECK(send(Method::kPost, "{}") == "POST {}");
  CHECK(send(Method::kPost, "") == "POST ");
  CHECK(send(Method::kPut, big) == "PUT " + big);
  CHECK(send(Method::kDelete, "") == "DELETE ");
  CHECK(send(Method::kGet, "") == "GET ");
  CHECK(server.requests().at(0).header("content-type") == "application/json");
  CHECK(server.connections() == 1);
  std::filesystem::remove(path);
}

TEST_CASE("a header that would start another is refused") {
  HttpClient client({});
  for (const Headers& headers : {Headers{{"X", "a\r\nY: b"}}, Headers{{"X: a\r\nY", "b"}},
                                 Headers{{"", "b"}}, Headers{{"X", std::string("a\0b", 3)}}}) {
    CHECK(failure_of([&] {
            client.fetch({.url = "http://127.0.0.1:1/", .headers = headers}, kLimit, {});
          }).code == Errc::kInvalid);
  }
  CHECK(client.counters().requests == 0);
}

TEST_CASE("a connection that is refused may be tried again") {
  std::string url;
  {
    ScriptedServer server(always(""));
    url = server.url("/a");
  }
  HttpClient client({});
  const Failure failure = failure_of([&] { get(client, url); });
  CHECK(failure.code == Errc::kUnavailable);
  CHECK(failure.transient);
}

TEST_CASE("an answer that breaks off may be tried again, after the bytes that came") {
  struct Row {
    std::string name;
    ScriptedServer::Handler handler;
    std::string delivered;
  };
  const std::string half = answer(200, {{"Content-Length", "10"}}, "01234");
  const std::vector<Row> rows = {
      {"short body",
       [&](const SeenRequest&, Connection& c) {
         c.send(half);
         c.close();
       },
       "01234"},
      {"short chunked body",
       [&](const SeenRequest&, Connection& c) {
         c.send(answer(200, {{"Transfer-Encoding", "chunked"}}, "5\r\n01234\r\n5\r\n"));
         c.close();
       },
       "01234"},
      {"no answer", [&](const SeenRequest&, Connection& c) { c.close(); }, ""},
      {"half a head",
       [&](const SeenRequest&, Connection& c) {
         c.send("HTTP/1.1 200 OK\r\nContent-");
         c.close();
       },
       ""},
      {"reset before the answer", [&](const SeenRequest&, Connection& c) { c.reset(); }, ""},
      {"not HTTP",
       [&](const SeenRequest&, Connection& c) {
         c.send("SSH-2.0-OpenSSH\r\n");
         c.close();
       },
       ""},
      {"garbage for chunks",
       [&](const SeenRequest&, Connection& c) {
         c.send(answer(200, {{"Transfer-Encoding", "chunked"}}, "zz\r\n01234\r\n"));
         c.close();
       },
       ""},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    ScriptedServer server(row.handler);
    HttpClient client({});
    std::string delivered;
    const Failure failure = failure_of([&] {
      client.perform(
          {.url = server.url("/a")}, [](const ResponseHead&) {},
          [&](std::span<const std::byte> data) {
            delivered.append(reinterpret_cast<const char*>(data.data()), data.size());
          },
          {});
    });
    CHECK(failure.code == Errc::kUnavailable);
    CHECK(failure.transient);
    CHECK(delivered == row.delivered);
  }
}

TEST_CASE("a reset in the middle of a body may be tried again") {
  std::promise<void> arrived;
  ScriptedServer server([&](const SeenRequest&, Connection& connection) {
    connection.send(answer(200, {{"Content-Length", "10"}}, "01234"));
    arrived.get_future().wait();
    connection.reset();
  });
  HttpClient client({});
  const Failure failure = failure_of([&] {
    client.perform(
        {.url = server.url("/a")}, [](const ResponseHead&) {},
        [&](std::span<const std::byte>) { arrived.set_value(); }, {});
  });
  CHECK(failure.code == Errc::kUnavailable);
  CHECK(failure.transient);
}

TEST_CASE("bytes beyond the promised length never arrive, nor in the next answer") {
  ScriptedServer server([](const SeenRequest& request, Connection& connection) {
    connection.send(answer(200, {{"Content-Length", "4"}}, "body and more than that"));
    if (request.target == "/close") connection.close();
  });
  HttpClient client({});
  for (int i = 0; i < 3; ++i) CHECK(get(client, server.url("/a")) == "body");
  CHECK(get(client, server.url("/close")) == "body");
}

TEST_CASE("a server that stops sending is given up after the stall time") {
  for (const std::string& sent : {std::string(), std::string("HTTP/1.1 200 OK\r\n"),
                                  answer(200, {{"Content-Length", "10"}}, "01234")}) {
    ScriptedServer server([&](const SeenRequest&, Connection& connection) {
      connection.send(sent);
      connection.stall();
    });
    HttpClient client(kImpatient);
    const auto start = std::chrono::steady_clock::now();
    const Failure failure = failure_of([&] { get(client, server.url("/a")); });
    CHECK(failure.code == Errc::kTimedOut);
    CHECK(failure.transient);
    CHECK(std::chrono::steady_clock::now() - start >= 100ms);
    CHECK(std::chrono::steady_clock::now() - start < 10s);
  }
}

TEST_CASE("a slow sink is not a stalled server") {
  ScriptedServer server(always(answer(200, {}, std::string(3 << 20, 'x'))));
  HttpClient client({.stall_timeout = 500ms});
  bool slept = false;
  std::uint64_t got = 0;
  client.perform(
      {.url = server.url("/a")}, [](const ResponseHead&) {},
      [&](std::span<const std::byte> data) {
        got += data.size();
        if (!std::exchange(slept, true)) std::this_thread::sleep_for(700ms);
      },
      {});
  CHECK(got == 3 << 20);
}

TEST_CASE("a stop ends a stalled request at once") {
  // The best of a few: on a busy machine threads wait for their turn.
  auto best = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 5 && best >= 100ms; ++i) {
    std::atomic<std::chrono::steady_clock::time_point> stopped_at;
    std::stop_source stop;
    ScriptedServer server([&](const SeenRequest&, Connection& connection) {
      connection.send(answer(200, {{"Content-Length", "10"}}, "01234"));
      stopped_at = std::chrono::steady_clock::now();
      stop.request_stop();
      connection.stall();
    });
    HttpClient client({});
    const Failure failure =
        failure_of([&] { client.fetch({.url = server.url("/a")}, kLimit, stop.get_token()); });
    CHECK(failure.code == Errc::kCancelled);
    CHECK_FALSE(failure.transient);
    best = std::min(best, std::chrono::steady_clock::now() - stopped_at.load());
  }
  CHECK(best < 100ms);
}

TEST_CASE("a stop that came before the request leaves the server alone") {
  ScriptedServer server(always(answer(200, {}, "body")));
  HttpClient client({});
  std::stop_source stop;
  stop.request_stop();
  CHECK(failure_of([&] {
          client.fetch({.url = server.url("/a")}, kLimit, stop.get_token());
        }).code == Errc::kCancelled);
  CHECK(server.requests().empty());
  CHECK(get(client, server.url("/a")) == "body");
}

TEST_CASE("a body over the limit is refused, announced or not") {
  const std::string big(1000, 'x');
  for (const std::string& bytes :
       {answer(200, {}, big),
        answer(200, {{"Transfer-Encoding", "chunked"}}, "3e8\r\n" + big + "\r\n0\r\n\r\n")}) {
    ScriptedServer server(always(bytes));
    HttpClient client({});
    CHECK(client.fetch({.url = server.url("/a")}, 1000, {}).second == big);
    const Failure failure =
        failure_of([&] { client.fetch({.url = server.url("/a?secret")}, 999, {}); });
    CHECK(failure.code == Errc::kInvalid);
    CHECK(failure.message.find("secret") == std::string::npos);
  }
}

TEST_CASE("what a callback throws comes out as it is, and the connection is not used again") {
  ScriptedServer server(always(answer(200, {}, "body")));
  HttpClient client({});
  const auto perform = [&](const HttpClient::OnHead& on_head, const HttpClient::OnBody& on_body) {
    client.perform({.url = server.url("/a")}, on_head, on_body, {});
  };
  const auto ignore_head = [](const ResponseHead&) {};
  const auto throw_any = [](const auto&) { throw std::out_of_range("mine"); };
  bool body_taken = false;
  const auto take_body = [&](auto) { body_taken = true; };
  CHECK_THROWS_AS(perform(throw_any, take_body), std::out_of_range);
  CHECK_FALSE(body_taken);
  CHECK_THROWS_AS(perform(ignore_head, throw_any), std::out_of_range);
  CHECK(get(client, server.url("/a")) == "body");
  CHECK(server.connections() == 3);
}

TEST_CASE("interim answers and trailers are passed over") {
  ScriptedServer server(always("HTTP/1.1 100 Continue\r\nX-Early: 1\r\n\r\n" +
                               answer(200, {{"Transfer-Encoding", "chunked"}, {"X-Final", "1"}},
                                      "4\r\nbody\r\n0\r\nX-Final: trailer\r\n\r\n")));
  HttpClient client({});
  const auto [head, body] = client.fetch({.url = server.url("/a")}, kLimit, {});
  CHECK(body == "body");
  CHECK(head.status == 200);
  CHECK_FALSE(head.header("x-early"));
  CHECK(head.count("x-final") == 1);
  CHECK(head.header("x-final") == "1");
}

TEST_CASE("endless headers end") {
  ScriptedServer server([](const SeenRequest&, Connection& connection) {
    connection.send("HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < 10'000; ++i) connection.send("X-Filler: " + std::string(100, 'x') + "\r\n");
    connection.stall();
  });
  HttpClient client({});
  CHECK(failure_of([&] { get(client, server.url("/a")); }).code == Errc::kInvalid);
}

TEST_CASE("TLS to a server that does not speak it fails, and says the host") {
  ScriptedServer server([](const SeenRequest&, Connection&) {});
  HttpClient client({.connect_timeout = 200ms, .stall_timeout = 100ms});
  // The "request" is a TLS hello: it never ends in an empty line, so the server waits.
  const Failure failure =
      failure_of([&] { get(client, "https://127.0.0.1:" + std::to_string(server.port()) + "/"); });
  CHECK(failure.transient);
  CHECK(failure.message.find("127.0.0.1") != std::string::npos);
}
