// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/http/range_read.hpp"

#include "base/error.hpp"

#include <utility>

namespace weightfs::source {

namespace {

/// A server may cut a range short; one that makes more pieces of it than this is asked again later.
constexpr int kMaxPieces = 16;

/// Ends a whole file that is sent for a range in the middle of it.
struct EnoughBytes {};

}  // namespace

RangeRead::RangeRead(net::HttpClient& http, Object object, GuardedSink& sink, OnAnswer on_answer)
    : http_(http), object_(std::move(object)), sink_(sink), on_answer_(std::move(on_answer)) {
  const Credential& credential = object_.credential;
  net::Headers& headers = object_.request.headers;
  headers.insert(headers.end(), credential.headers.begin(), credential.headers.end());
  object_.request.tls = credential.tls;
}

void RangeRead::run(const std::stop_token& stop) {
  for (int piece = 0; !sink_.done(); ++piece) {
    if (piece == kMaxPieces) {
      throw TransientError(Errc::kUnavailable, "sends the range in too many pieces");
    }
    run_once(stop);
  }
}

void RangeRead::run_once(const std::stop_token& stop) {
  object_.request.range = {sink_.rest().begin, sink_.rest().end - 1};
  try {
    http_.perform(
        object_.request, [this](const net::ResponseHead& head) { take_head(head); },
        [this](std::span<const std::byte> data) { take_body(data); }, stop);
  } catch (const EnoughBytes&) {
    return;
  }
  if (position_ != answer_.body.end) {
    throw TransientError(
        Errc::kUnavailable,
        "stopped " + std::to_string(answer_.body.end - position_) + " bytes before the end");
  }
}

void RangeRead::take_head(const net::ResponseHead& head) {
  answer_ = check_answer(head, sink_.rest(), object_.size, object_.credential.origin);
  on_answer_(head, answer_);
  position_ = answer_.body.begin;
}

void RangeRead::take_body(std::span<const std::byte> data) {
  if (data.size() > answer_.body.end - position_) {
    throw Error(Errc::kInvalid, "sent more than the " + std::to_string(answer_.body.size()) +
                                    " bytes that it promised");
  }
  sink_.write(std::exchange(position_, position_ + data.size()), data);
  if (sink_.done() && position_ != answer_.body.end) throw EnoughBytes();
}

}  // namespace weightfs::source
