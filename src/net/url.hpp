// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace weightfs::net {

/// Who a connection is to, and whom secrets are for (RFC 6454).
struct Origin {
  std::string scheme;  ///< "http" or "https"
  std::string host;    ///< lower case; an IPv6 address in brackets
  std::uint16_t port = 0;

  /// "localhost" and below, 127.0.0.0/8, [::1].
  [[nodiscard]] bool is_loopback() const noexcept;
  /// host, and the port where it is not the scheme's own.
  [[nodiscard]] std::string authority() const;
  auto operator<=>(const Origin&) const = default;
};

/// An absolute http(s) URL without user, password and fragment. A value.
class Url {
 public:
  /// Bytes that must not stand in a URL are encoded; what is encoded stays as it is, as do "." and
  /// "..". Error(kInvalid), without the query in its message.
  [[nodiscard]] static Url parse(std::string_view text);
  /// What a reference (a Location header) means, seen from here. A fragment is dropped.
  [[nodiscard]] Url resolve(std::string_view reference) const;

  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  [[nodiscard]] const Origin& origin() const noexcept { return origin_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }    ///< encoded, from '/'
  [[nodiscard]] const std::string& query() const noexcept { return query_; }  ///< without the '?'
  /// For messages: without the query, which may hold a signature.
  [[nodiscard]] std::string display() const;

 private:
  std::string text_;
  Origin origin_;
  std::string path_;
  std::string query_;
};

}  // namespace weightfs::net
