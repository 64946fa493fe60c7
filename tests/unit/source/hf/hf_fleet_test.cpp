// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/hf/hf_source.hpp"

#include "base/error.hpp"
#include "source/hf/scripted_hub.hpp"
#include "source/source_pool.hpp"

#include <catch2/catch_test_macros.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

using weightfs::Error;
using weightfs::Synchronized;
using weightfs::net::HttpClient;
using weightfs::source::SourcePool;
using weightfs::test::answer;
using weightfs::test::git_id;
using weightfs::test::ScriptedHub;
using weightfs::test::SeenRequest;

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using Connection = weightfs::test::ScriptedServer::Connection;

constexpr std::size_t kNodes = 200;
constexpr unsigned kQuota = 500;  // what the Hub grants one address in five minutes ...
constexpr auto kWindow = 1s;      // ... at three hundred times its pace

/// A fixed window, as the Hub has it, for all requests together.
struct Limiter {
  struct Window {
    steady_clock::time_point begin;
    unsigned used = 0;
  };
  Synchronized<Window> window;
  std::atomic<std::size_t> refused{0};
  std::atomic<std::size_t> windows{0};

  bool operator()(const SeenRequest&, Connection& connection) {
    const bool admitted = window.with([&](Window& current) {
      const auto now = steady_clock::now();
      if (now - current.begin >= kWindow) {
        current = {now, 0};
        ++windows;
      }
      return ++current.used <= kQuota;
    });
    if (admitted) return false;
    ++refused;
    connection.send(answer(429, {{"RateLimit", "\"api\";r=0;t=1"}}, ""));
    return true;
  }
};

}  // namespace

TEST_CASE("two hundred nodes behind one address all get there, and none hammers") {
  ScriptedHub hub({{"config.json", {"{}", false}},
                   {"tokenizer.json", {"[]", false}},
                   {"model.safetensors", {std::string(1000, 'w'), true}}});
  Limiter limiter;
  hub.set_fault(
      [&](const auto& request, auto& connection) { return limiter(request, connection); });
  std::atomic<std::size_t> done{0};
  {
    std::vector<std::jthread> nodes;
    for (std::size_t i = 0; i < kNodes; ++i) {
      nodes.emplace_back([&] {
        try {
          HttpClient http({});
          SourcePool pool(http, hub.access());
          if (pool.get("hf://org/name")->resolve({}).revision() == git_id('a')) ++done;
        } catch (const Error& error) {
          UNSCOPED_INFO(error.what());
        }
      });
    }
  }
  CHECK(done == kNodes);
  // Six requests each; and in no window is a node refused more often than it asks at once.
  CHECK(limiter.windows >= kNodes * 6 / kQuota);
  CHECK(limiter.refused <= kNodes * 2 * limiter.windows);
  // More only where a connection was lost: two hundred come at once.
  CHECK(hub.hub().requests().size() <= kNodes * 7 + limiter.refused);
}
