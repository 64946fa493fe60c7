// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "net/redirect.hpp"

#include "base/error.hpp"
#include "net/redirect_target.hpp"

#include <strings.h>
#include <algorithm>
#include <array>

namespace weightfs::net {

/// A list of what is harmless rather than of what is secret: tokens have many names.
bool describes_object(std::string_view header_name) noexcept {
  constexpr std::array<std::string_view, 8> kNames = {
      "accept",        "accept-encoding",     "cache-control", "if-match",
      "if-none-match", "if-unmodified-since", "if-range",      "range",
  };
  return std::ranges::any_of(kNames, [&](std::string_view known) {
    return known.size() == header_name.size() &&
           ::strncasecmp(known.data(), header_name.data(), known.size()) == 0;
  });
}

bool is_redirect(int status) noexcept {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

Hop follow_redirect(const Hop& from, std::string_view location) {
  Hop to{.url = from.url.resolve(location), .headers = {}, .sent_by = {}};
  if (from.url.origin().scheme == "https" && to.url.origin().scheme != "https") {
    throw Error(Errc::kInvalid, from.url.display() + " redirects from https to " +
                                    to.url.display() + ", which is refused");
  }
  if (from.url.origin() != to.url.origin()) {
    to.sent_by = from.url.origin();
    if (!may_lead_to(*to.sent_by, to.url.origin().host)) {
      throw Error(Errc::kInvalid, from.url.display() + " redirects to " +
                                      to.url.origin().authority() + ", which is refused");
    }
  } else {
    to.sent_by = from.sent_by;
  }
  const bool same_origin = from.url.origin() == to.url.origin();
  if (same_origin) to.tls = from.tls;
  std::ranges::copy_if(from.headers, std::back_inserter(to.headers), [&](const auto& header) {
    return same_origin || describes_object(header.first);
  });
  return to;
}

}  // namespace weightfs::net
