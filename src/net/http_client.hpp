// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "net/tls_identity.hpp"
#include "net/url.hpp"

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

enum class Method { kGet, kHead, kPost, kPut, kDelete };

/// "Name", "value" pairs.
using Headers = std::vector<std::pair<std::string, std::string>>;

struct Request {
  Method method = Method::kGet;
  std::string url;  ///< http or https, without user, password and fragment
  /// Secrets belong here and never into the URL; they are not logged.
  Headers headers;
  /// A bounded byte range [first, second], both inclusive as in RFC 9110; no header without it.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> range;
  /// For kPost, kPut and kDelete; `content_type` describes it.
  std::string body;
  std::string content_type = "application/json";
  /// At most this many hops of a GET or HEAD, each checked: https never to http, never to another
  /// scheme. When the origin (scheme, host, port) changes, only headers that describe the wanted
  /// object go along (ranges, conditions, content negotiation): Authorization, Cookie and whatever
  /// else may be a secret stay behind. 0, and every other method, returns the 3xx itself.
  int max_redirects = 10;
  /// Who gave us the URL, where that is somebody else than the origin in it or a person: then it
  /// may not lead to this machine itself (net/redirect_target.hpp).
  std::optional<Origin> sent_by = {};
  /// For the URL's own origin: where a redirect leads to another, the client's authorities count
  /// and no certificate is shown.
  TlsIdentity tls = {};
  /// Instead of the client's.
  std::optional<std::chrono::milliseconds> stall_timeout;
};

/// Status line and headers of the final answer, known before its body.
struct ResponseHead {
  int status = 0;
  std::string effective_url;  ///< after redirects; may carry a signature, so not for messages
  std::multimap<std::string, std::string> headers;  ///< names in lower case

  /// The first value of a header; nullopt where it is absent.
  [[nodiscard]] std::optional<std::string> header(const std::string& lower_case_name) const;
  /// How often it was sent.
  [[nodiscard]] std::size_t count(const std::string& lower_case_name) const;
};

struct HttpClientOptions {
  std::chrono::milliseconds connect_timeout{10'000};
  /// A transfer that moves no byte for this long is a TransientError(kTimedOut).
  std::chrono::milliseconds stall_timeout{30'000};
  std::string ca_bundle;    ///< PEM file; empty means the system's
  std::string unix_socket;  ///< talk to this socket whatever the URL's host; empty means TCP
  std::string user_agent = "weightfs";
  /// Connections kept for the next request, over all origins, and for how long.
  std::size_t max_idle_connections = 64;
  std::chrono::milliseconds idle_timeout{60'000};
};

struct HttpCounters {
  std::uint64_t requests = 0;     ///< each hop of a redirect is one
  std::uint64_t bytes = 0;        ///< of bodies received
  std::uint64_t connections = 0;  ///< opened
};

/// An HTTP/1.1 client for bulk ranges: one connection per running request (HTTP/2 would put all
/// ranges on one), idle ones are kept and reused per origin. Blocking; runs on the caller's thread
/// and ends within milliseconds of a stop request. Never decompresses (`Accept-Encoding:
/// identity`). TLS 1.2 at least. Proxies are taken from the environment as curl does, but never for
/// loopback or a unix socket; what is in their URLs is in no message.
///
/// Thread-safe. Owns its idle connections. Sees no policy: no retry, no meaning of status codes.
/// The process ignores SIGPIPE.
class HttpClient {
 public:
  /// Called once, after redirects, before the first byte of the body. Throw to end the request
  /// without taking the body.
  using OnHead = std::function<void(const ResponseHead&)>;
  /// Called with body bytes as they arrive. Throw to end the request.
  using OnBody = std::function<void(std::span<const std::byte>)>;

  explicit HttpClient(HttpClientOptions options);
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  ~HttpClient();

  /// Error: TransientError(kUnavailable) refused, reset, name not resolved, connection lost in the
  /// body, an answer that is not HTTP; TransientError(kTimedOut) connect or stall;
  /// Error(kPermission) TLS says no; Error(kInvalid) bad URL, redirect loop or forbidden redirect;
  /// Error(kCancelled). What a callback throws comes out unchanged. Messages never hold the query
  /// of a URL.
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
