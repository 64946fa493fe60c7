// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "net/http_client.hpp"

#include "base/clock.hpp"
#include "base/error.hpp"
#include "net/connection_pool.hpp"
#include "net/redirect.hpp"
#include "net/transfer.hpp"
#include "net/url.hpp"

#include <algorithm>
#include <charconv>
#include <mutex>
#include <utility>

namespace weightfs::net {

namespace {

/// curl's own set-up, which older versions do not lock. A function static because it is the
/// library's state and not ours: once per process, whoever is first, and never undone.
void initialise_curl() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
      throw Error(Errc::kInternal, "libcurl cannot be initialised");
    }
  });
}

bool is_token(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

/// A line break in a value would start a header, or a request, of somebody else's making.
void check_headers(const Headers& headers) {
  for (const auto& [name, value] : headers) {
    if (!is_token(name) || value.empty() || value.find_first_of("\r\n", 0) != std::string::npos ||
        value.find('\0') != std::string::npos) {
      throw Error(Errc::kInvalid, "request header " + name + " is not valid");
    }
  }
}

bool may_follow(const Request& request) {
  return request.max_redirects > 0 &&
         (request.method == Method::kGet || request.method == Method::kHead);
}

}  // namespace

std::optional<std::string> ResponseHead::header(const std::string& lower_case_name) const {
  const auto found = headers.find(lower_case_name);
  if (found == headers.end()) return std::nullopt;
  return found->second;
}

std::size_t ResponseHead::count(const std::string& lower_case_name) const {
  return headers.count(lower_case_name);
}

class HttpClient::State {
 public:
  explicit State(HttpClientOptions options)
      : options_(std::move(options)),
        pool_(options_.max_idle_connections, options_.idle_timeout, clock_) {}

  ResponseHead run_hop(const Request& request, const Hop& hop, const Transfer::OnHead& on_head,
                       const OnBody& on_body, const std::stop_token& stop) {
    const Peer peer{.origin = hop.url.origin(), .tls = hop.tls};
    MultiHandle multi = pool_.acquire(peer);
    Transfer transfer(options_, request, hop, on_head, on_body, stop, counters_);
    ResponseHead head = transfer.run(multi.get());
    if (transfer.connection_is_reusable()) pool_.release(peer, std::move(multi));
    return head;
  }

  [[nodiscard]] HttpCounters counters() const {
    return {counters_.requests, counters_.bytes, counters_.connections};
  }

 private:
  const HttpClientOptions options_;
  const SystemClock clock_;
  ConnectionPool pool_;
  LiveCounters counters_;
};

HttpClient::HttpClient(HttpClientOptions options) {
  initialise_curl();
  state_ = std::make_unique<State>(std::move(options));
}

HttpClient::~HttpClient() = default;

ResponseHead HttpClient::perform(const Request& request, const OnHead& on_head,
                                 const OnBody& on_body, std::stop_token stop) {
  check_headers(request.headers);
  check_headers({{"content-type", request.content_type}});
  Hop hop{.url = Url::parse(request.url),
          .headers = request.headers,
          .tls = request.tls,
          .sent_by = request.sent_by};
  std::vector<std::string> visited;
  for (;;) {
    std::optional<std::string> location;
    const Transfer::OnHead decide = [&](const ResponseHead& head) {
      if (may_follow(request) && is_redirect(head.status)) location = head.header("location");
      if (location) return Transfer::Body::kDiscard;
      on_head(head);
      return Transfer::Body::kDeliver;
    };
    ResponseHead head = state_->run_hop(request, hop, decide, on_body, stop);
    if (!location) return head;

    visited.push_back(hop.url.text());
    Hop next = follow_redirect(hop, *location);
    if (std::ranges::find(visited, next.url.text()) != visited.end()) {
      throw Error(Errc::kInvalid, "redirects go in a circle at " + next.url.display());
    }
    if (visited.size() > static_cast<std::size_t>(request.max_redirects)) {
      throw Error(Errc::kInvalid, "more than " + std::to_string(request.max_redirects) +
                                      " redirects, the last to " + next.url.display());
    }
    hop = std::move(next);
  }
}

std::pair<ResponseHead, std::string> HttpClient::fetch(const Request& request, std::uint64_t limit,
                                                       std::stop_token stop) {
  std::string body;
  const auto refuse = [&] {
    throw Error(Errc::kInvalid, Url::parse(request.url).display() + " is larger than " +
                                    std::to_string(limit) + " bytes");
  };
  const OnHead on_head = [&](const ResponseHead& head) {
    const std::string length = head.header("content-length").value_or("");
    std::uint64_t announced = 0;
    std::from_chars(length.data(), length.data() + length.size(), announced);
    if (request.method != Method::kHead && announced > limit) refuse();
  };
  const OnBody on_body = [&](std::span<const std::byte> data) {
    if (data.size() > limit - body.size()) refuse();
    body.append(reinterpret_cast<const char*>(data.data()), data.size());
  };
  ResponseHead head = perform(request, on_head, on_body, std::move(stop));
  return {std::move(head), std::move(body)};
}

HttpCounters HttpClient::counters() const {
  return state_->counters();
}

}  // namespace weightfs::net
