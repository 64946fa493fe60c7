// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "net/curl_handles.hpp"
#include "net/http_client.hpp"
#include "net/redirect.hpp"
#include "net/response_parser.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <stop_token>

namespace weightfs::net {

/// HttpCounters while they are counted.
struct LiveCounters {
  std::atomic<std::uint64_t> requests{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> connections{0};
};

/// One request and its answer over one connection: a single hop, redirects are not followed.
///
/// Confined to the calling thread; only the stop callback comes from another. All that it is given
/// must outlive it.
class Transfer {
 public:
  enum class Body { kDeliver, kDiscard };
  /// Called once, when the head is there; says what becomes of the body.
  using OnHead = std::function<Body(const ResponseHead&)>;

  Transfer(const HttpClientOptions& options, const Request& request, const Hop& hop,
           const OnHead& on_head, const HttpClient::OnBody& on_body, std::stop_token stop,
           LiveCounters& counters);

  /// Runs to the end on `multi`. Throws as HttpClient::perform does; the connection is closed then.
  ResponseHead run(CURLM* multi);
  /// Whether `multi` now holds a connection that can take the next request.
  [[nodiscard]] bool connection_is_reusable() const noexcept { return reusable_; }

 private:
  void set_options();
  void set_method();
  void set_security();
  void set_headers();
  void set_callbacks();
  void drive(CURLM* multi);
  [[nodiscard]] std::chrono::milliseconds time_to_stall();
  [[nodiscard]] CURLcode result_of(CURLM* multi) const;
  void finish(CURLcode code);
  [[noreturn]] void throw_failure(CURLcode code);
  [[nodiscard]] bool take_connection(const char* address, int port) noexcept;
  [[nodiscard]] bool take_header(std::string_view line) noexcept;
  [[nodiscard]] bool take_body(std::span<const std::byte> data) noexcept;

  const HttpClientOptions& options_;
  const Request& request_;
  const Hop& hop_;
  const OnHead& on_head_;
  const HttpClient::OnBody& on_body_;
  const std::stop_token stop_;
  LiveCounters& counters_;

  EasyHandle easy_;
  HeaderList header_list_;
  char error_text_[CURL_ERROR_SIZE] = {};

  ResponseParser parser_;
  Body body_ = Body::kDeliver;
  std::uint64_t discarded_ = 0;
  bool discarded_enough_ = false;
  std::exception_ptr thrown_;  ///< by a callback of the caller, on its way out of run()
  bool connected_ = false;
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point last_progress_;
  curl_off_t uploaded_ = 0;
  bool reusable_ = false;
};

}  // namespace weightfs::net
