// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "net/http_client.hpp"
#include "net/url.hpp"

#include <optional>
#include <string_view>

namespace weightfs::net {

/// Where a request stands on its way through redirects.
struct Hop {
  Url url;
  Headers headers;
  TlsIdentity tls = {};
  /// Who sent us here, where that is another origin.
  std::optional<Origin> sent_by = {};
};

/// 301, 302, 303, 307, 308: what a GET or HEAD goes on from.
[[nodiscard]] bool is_redirect(int status) noexcept;

/// Whether a header describes the wanted object, and so may go to whatever origin has it.
[[nodiscard]] bool describes_object(std::string_view header_name) noexcept;

/// The hop that `location` leads to, with what may go along: all headers and the TLS identity
/// within one origin, only the headers that describe the wanted object to another. What was left
/// behind does not come back. Error(kInvalid) for https to http, other schemes, a user name in the
/// URL, addresses that nobody may send us to (net/redirect_target.hpp; those behind a name are seen
/// when it is connected to), and garbage. Pure.
[[nodiscard]] Hop follow_redirect(const Hop& from, std::string_view location);

}  // namespace weightfs::net
