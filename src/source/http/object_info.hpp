// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "net/url.hpp"
#include "source/http/validator.hpp"
#include "source/web.hpp"

#include <cstdint>
#include <stop_token>
#include <string>

namespace weightfs::source {

/// What a server says about an object without sending it.
struct ObjectInfo {
  Validator validator;     ///< its length is the object's size
  std::int64_t mtime = 0;  ///< of Last-Modified, seconds since 1970; 0 where there is none
};

/// Asks with HEAD, and where that is refused or does not say the length, with a GET of the first
/// byte. Error: as throw_status; kUnsupported where neither says the length; kInvalid where the
/// server sends on to the same URL with a '/' behind it, as for a directory; what HttpClient
/// throws.
[[nodiscard]] ObjectInfo ask_about(const Web& web, const net::Url& url,
                                   const std::stop_token& stop);

}  // namespace weightfs::source
