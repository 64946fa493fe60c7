// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/error.hpp"
#include "net/http_client.hpp"
#include "net/scripted_server.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <string>

namespace weightfs::test {

inline constexpr std::uint64_t kLimit = 1 << 20;

/// The body of what is at `url`.
inline std::string get(net::HttpClient& client, const std::string& url) {
  return client.fetch({.url = url}, kLimit, {}).second;
}

/// What a request failed with; transient or not is part of it.
struct RequestFailure {
  Errc code;
  bool transient;
  std::string message;
};

/// A server's, which sends these bytes to whoever asks.
inline ScriptedServer::Handler always(std::string bytes) {
  return [bytes](const SeenRequest&, ScriptedServer::Connection& connection) {
    connection.send(bytes);
  };
}

template <class F>
RequestFailure failure_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    const bool transient = dynamic_cast<const TransientError*>(&error) != nullptr;
    return {error.code(), transient, error.what()};
  }
  FAIL("nothing was thrown");
  return {};
}

}  // namespace weightfs::test
