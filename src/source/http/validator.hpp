// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "net/http_client.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weightfs::source {

/// What tells one version of an HTTP object from another, as the server said it when the object was
/// resolved (RFC 9110, 8.8).
///
/// A strong ETag changes with every byte. Last-Modified has a grain of a second: two versions
/// within one second look alike. Where a server sends neither, the length is all there is, and a
/// replacement of the same length goes unnoticed unless the digest is known.
struct Validator {
  std::string etag;           ///< as sent, W/ and quotes included; empty where there was none
  std::string last_modified;  ///< as sent; empty where there was none
  std::uint64_t length = 0;

  /// Of the object that `head` is about, which has `length` bytes.
  [[nodiscard]] static Validator of(const net::ResponseHead& head, std::uint64_t length);
  /// The inverse of text(). Error(kInvalid).
  [[nodiscard]] static Validator parse(std::string_view text);
  /// For File::validator; printable ASCII.
  [[nodiscard]] std::string text() const;

  /// The header that makes a server refuse (412) to send another version; nullopt where it was
  /// given nothing to compare.
  [[nodiscard]] std::optional<std::pair<std::string, std::string>> precondition() const;
  /// What in `head` shows another version, or leaves it open; nullopt where it is the same one.
  [[nodiscard]] std::optional<std::string> difference(const net::ResponseHead& head) const;

  bool operator==(const Validator&) const = default;
};

}  // namespace weightfs::source
