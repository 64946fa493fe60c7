// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "net/http_client.hpp"

#include <cstddef>
#include <string_view>

namespace weightfs::net {

/// Collects the header lines of one answer. Interim answers (1xx) are passed over, trailers
/// ignored. A value, confined to one thread.
class ResponseParser {
 public:
  /// A server that sends more than this is not describing a file.
  static constexpr std::size_t kMaxHeaderBytes = 256 << 10;

  /// Takes one line, its CRLF included; true when it ended the head of the final answer.
  /// Error(kInvalid) beyond kMaxHeaderBytes and for a line that is no header: guessing at it would
  /// be guessing at what the body is.
  bool take_line(std::string_view line);
  [[nodiscard]] bool complete() const noexcept { return complete_; }
  [[nodiscard]] ResponseHead& head() noexcept { return head_; }

 private:
  void take_header(std::string_view line);

  ResponseHead head_;
  std::size_t bytes_ = 0;
  bool complete_ = false;
};

}  // namespace weightfs::net
