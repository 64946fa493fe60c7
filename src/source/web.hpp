// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "net/http_client.hpp"
#include "net/url.hpp"
#include "source/credentials.hpp"

namespace weightfs::source {

/// What sources reach servers with: the client, and who we are for them. Thread-safe. Refers to
/// both, which must outlive it.
class Web {
 public:
  /// Without credentials where there are none. Not explicit: a client alone is one.
  Web(net::HttpClient& http, Credentials* credentials = nullptr)
      : http_(&http), credentials_(credentials) {}

  [[nodiscard]] net::HttpClient& http() const noexcept { return *http_; }
  /// As Credentials::of.
  [[nodiscard]] Credential credential(const net::Url& url) const {
    return credentials_ == nullptr ? Credential{} : credentials_->of(url);
  }

 private:
  net::HttpClient* http_;
  Credentials* credentials_;
};

}  // namespace weightfs::source
