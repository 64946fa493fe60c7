// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace weightfs::net {

enum class Method { kGet, kHead };

struct Request {
  Method method = Method::kGet;
  std::string url;
  /// "Name: value" pairs. Secrets belong here and never into the URL; they are not logged.
  std::vector<std::pair<std::string, std::string>> headers;
  /// A bounded byte range [first, second], both inclusive as in RFC 9110; no header without it.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> range;
  /// At most this many hops, each checked: https never to http, never to another scheme; Authorization
  /// and Cookie are dropped when the host changes. 0 returns the 3xx itself.
  int max_redirects = 10;
};

/// Status line and headers of the final answer, known before its body.
struct ResponseHead {
  int status = 0;
  std::string effective_url;
  std::multimap<std::string, std::string> headers;  ///< names in lower case

  /// The first value of a header; nullopt where it is absent.
  [[nodiscard]] std::optional<std::string> header(const std::string& lower_case_name) const;
};

struct HttpClientOptions {
  std::chrono::milliseconds connect_timeout{10'000};
  /// A transfer that moves no byte for this long is a TransientError(kTimedOut).
  std::chrono::milliseconds stall_timeout{30'000};
  std::string ca_bundle;      ///< PEM file; empty means the system's
  std::string unix_socket;    ///< talk to this socket whatever the URL's host; empty means TCP
  std::string user_agent = "weightfs";
};

struct HttpCounters {
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;        ///< of bodies received
  std::uint64_t connections = 0;  ///< opened
};

/// An HTTP/1.1 client for bulk ranges: one connection per running request (HTTP/2 would put all ranges
/// on one), idle ones are kept and reused per origin. Blocking; runs on the caller's thread and ends
/// within milliseconds of a stop request. Never decompresses (`Accept-Encoding: identity`).
///
/// Thread-safe. Owns its idle connections. Sees no policy: no retry, no meaning of status codes.
class HttpClient {
 public:
  /// Called once, after redirects, before the first byte of the body. Throw to end the request without
  /// taking the body.
  using OnHead = std::function<void(const ResponseHead&)>;
  /// Called with body bytes as they arrive. Throw to end the request.
  using OnBody = std::function<void(std::span<const std::byte>)>;

  explicit HttpClient(HttpClientOptions options);
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  ~HttpClient();

  /// Error: TransientError(kUnavailable) refused, reset, name not resolved, connection lost in the
  /// body; TransientError(kTimedOut) connect or stall; Error(kPermission) TLS says no;
  /// Error(kInvalid) bad URL, redirect loop or forbidden redirect; Error(kCancelled).
  ResponseHead perform(const Request& request, const OnHead& on_head, const OnBody& on_body,
                       std::stop_token stop);

  /// Head and body, the body at most `limit` bytes (more is Error(kInvalid)).
  std::pair<ResponseHead, std::string> fetch(const Request& request, std::uint64_t limit,
                                             std::stop_token stop);

  [[nodiscard]] HttpCounters counters() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace weightfs::net
