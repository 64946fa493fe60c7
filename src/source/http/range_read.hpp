// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "net/http_client.hpp"
#include "snapshot/file.hpp"
#include "source/credentials.hpp"
#include "source/guarded_sink.hpp"
#include "source/http/ranged_answer.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <string>

namespace weightfs::source {

/// One range of one object, by as many requests as the server makes of it. A byte reaches the sink
/// only once the head of its answer was found to be about this range of this version.
///
/// Confined to one thread. All that it is given must outlive it.
class RangeRead {
 public:
  /// Judges the version that an answer is about, once its range is found right, and before a byte
  /// of its body; throws.
  using OnAnswer = std::function<void(const net::ResponseHead&, const RangedAnswer&)>;

  /// What is asked for; who asks is added to it.
  struct Object {
    net::Request request;
    std::uint64_t size = 0;
    Credential credential;
  };
  RangeRead(net::HttpClient& http, Object object, GuardedSink& sink, OnAnswer on_answer);

  /// Until the sink has all of it. Error: as check_answer and HttpClient; kInvalid a body that is
  /// longer than its head said; TransientError(kUnavailable) one that is shorter.
  void run(const std::stop_token& stop);

 private:
  void run_once(const std::stop_token& stop);
  void take_head(const net::ResponseHead& head);
  void take_body(std::span<const std::byte> data);

  net::HttpClient& http_;
  Object object_;
  GuardedSink& sink_;
  const OnAnswer on_answer_;
  RangedAnswer answer_;
  std::uint64_t position_ = 0;  ///< in the file, of the next byte of the body
};

}  // namespace weightfs::source
