// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "net/http_client.hpp"

#include <string>

namespace weightfs::source {

/// Says no to compressed and multipart bodies, whose bytes are not the object's:
/// Error(kUnsupported).
void check_encoding(const net::ResponseHead& head);

/// What a status that is neither 200 nor 206 means: kPermission (401, 403, 407), kNotFound (404,
/// 410), kChanged (412, 416); TransientError(kUnavailable) with the server's Retry-After for 408,
/// 425, 429 and 5xx; kInvalid for the rest. `credential` is where the one that was sent is from;
/// empty for none.
[[noreturn]] void throw_status(const net::ResponseHead& head, const std::string& credential = "");

}  // namespace weightfs::source
